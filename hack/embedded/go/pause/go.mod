module mpiop/cluster/pause

go 1.26.0
