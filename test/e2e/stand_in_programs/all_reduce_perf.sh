#!/bin/sh
# Stands in for NCCL's all_reduce_perf: says which rank it is, where, and which interface and devices it was given.
rank=${OMPI_COMM_WORLD_RANK:?not started by mpirun} ranks=${OMPI_COMM_WORLD_SIZE:?not started by mpirun}
echo "# Rank $rank of $ranks on $(hostname) device ${DRA_DEVICE:-none} socket interface ${NCCL_SOCKET_IFNAME:-any} arguments: $*"
[ "$rank" != 0 ] || echo '# Avg bus bandwidth    : 0'
