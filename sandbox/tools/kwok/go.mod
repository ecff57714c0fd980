module sandbox/tools/kwok

go 1.26
