#!/bin/sh
# Compiles ring.c and runs it. Each rank compiles for itself: ranks of one host share /tmp.
set -e
program=/tmp/ring.$OMPI_COMM_WORLD_RANK
mpicc -O2 -Wall -o "$program" ring.c
exec "$program"
