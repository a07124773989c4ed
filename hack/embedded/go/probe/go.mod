module mpiop/cluster/probe

go 1.26.0
