"""`python -m mpiop` is the command `mpiop`."""

import sys

from mpiop.cli import main

if __name__ == "__main__":
    sys.exit(main())
