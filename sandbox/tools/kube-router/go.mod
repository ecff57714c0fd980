module sandbox/tools/kube-router

go 1.26
