"""`kubectl mpi`: run, inspect and manage MPI jobs from a terminal."""
