#!/bin/sh
# Runs hpcc with the input of this folder, and prints the main results. hpcc writes into its working directory, and an uploaded folder is
# read-only, so each rank gets a directory of its own.
#
# kubectl mpi run -n 4 --slots 2 --image mpiop.invalid/hpcc:openmpi --ssh injected --upload examples/applications/hpcc -- ./run.sh
set -e
input=$(dirname "$(readlink -f "$0")")/hpccinf.txt
folder=$(mktemp -d)
cp "$input" "$folder"
cd "$folder"
hpcc
if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then
    grep -E 'PASSED|FAILED|^(Success|CommWorldProcs|HPL_N|HPL_Tflops|StarSTREAM_Triad|MPIFFT_Gflops|MaxPingPong[A-Za-z_]+)=' hpccoutf.txt
fi
rm -r "$folder"
