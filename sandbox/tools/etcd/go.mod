module sandbox/tools/etcd

go 1.26
