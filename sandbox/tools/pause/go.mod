module sandbox/tools/pause

go 1.26
