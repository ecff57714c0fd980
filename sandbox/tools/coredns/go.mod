module sandbox/tools/coredns

go 1.26
