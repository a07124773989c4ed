"""`kubectl mpi`: run and look after MPI jobs from a terminal."""
