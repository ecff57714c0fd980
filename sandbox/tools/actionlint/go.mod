module sandbox/tools/actionlint

go 1.26
