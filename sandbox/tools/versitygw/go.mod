module sandbox/tools/versitygw

go 1.26
