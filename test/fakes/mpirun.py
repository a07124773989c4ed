"""A stand-in for mpirun that starts each rank on this machine, one after the other.

As Open MPI on workers, it passes on only the variables that it is given by name. Without a hostfile in its environment, it
behaves as under Slurm, where a rank has all variables of the script; so does Hydra.
"""

import os
import subprocess
import sys

_ONE = {"-N", "-ppn", "--host", "-hosts", "-wdir", "--bind-to", "-bind-to", "-map-by", "--map-by", "-machinefile"}
_TWO = {"-mca", "--mca", "-genv"}
_FLAGS = {
    "--tag-output",
    "--report-bindings",
    "-prepend-pattern=[1,%r]<output>:",
    "-oversubscribe",
    "--oversubscribe",
    "--allow-run-as-root",
}


def main(words: list[str]) -> int:
    """Run every program of the command line; return the last exit code that is not 0."""
    is_bare = "OMPI_MCA_orte_default_hostfile" in os.environ
    passed = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"} or not is_bare}
    ranks: list[list[str]] = []
    while words:
        count, program = 1 if is_bare else int(os.environ.get("SLURM_NTASKS", "1")), list[str]()
        while words and words[0].startswith("-"):
            word = words.pop(0)
            if word in {"-n", "-np"}:
                count = int(words.pop(0))
            elif word == "-x":
                name, found, value = words.pop(0).partition("=")
                passed |= {name: value if found else os.environ[name]} if found or name in os.environ else {}
            elif word not in _FLAGS:
                del words[: 2 if word in _TWO else 1]
                if word not in _TWO | _ONE:
                    sys.exit(f"mpirun: unknown option {word}")
        while words and words[0] != ":":
            program.append(words.pop(0))
        words = words[1:]
        ranks += [program] * count
    return _start(ranks, passed)


def _start(ranks: list[list[str]], passed: dict[str, str]) -> int:
    code = 0
    text = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    for number, program in enumerate(ranks):
        environment = passed | {
            "OMPI_COMM_WORLD_RANK": str(number),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(number),
            "OMPI_COMM_WORLD_SIZE": str(len(ranks)),
        }
        sys.stdout.flush()
        ended = subprocess.run(program, env=environment, input=b"" if number else text, check=False)
        code = ended.returncode or code
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
