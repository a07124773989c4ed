"""mpiop: an MPI Operator for Kubernetes."""

__version__ = "0.1.0"
