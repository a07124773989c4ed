"""The MPIJob controller: from an observed world to the desired one."""
