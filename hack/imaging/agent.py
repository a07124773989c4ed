"""`hack/agent`: mpiop-agent is formatted, vetted, tested, fuzzed and built with the Go that builds the cluster."""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from embedded import packages
from embedded.errors import ClusterError
from embedded.layout import AGENT_SOURCES
from embedded.progress import Progress
from embedded.toolchain import build_environment, find_go
from imaging.errors import ImagesError
from imaging.programs import build_programs

LEAST_COVERAGE = 85.0
MOST_BYTES = 6_000_000
RACE_DETECTOR = {"gcc": "gcc", "/usr/include/stdlib.h": "libc6-dev"}
"""Program or file that Go needs for it → Debian package."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="hack/agent", description="Check and build mpiop-agent.")
    parser.add_argument("command", choices=["build", "check"], help="build prints the path of the program; check does all that CI wants")
    parser.add_argument(
        "--fuzz", default="", metavar="TIME", help="how long to fuzz each target, for example 30s; by default its seeds only run"
    )
    parsed = parser.parse_args(arguments)
    try:
        if parsed.command == "check":
            check(parsed.fuzz)
        print(program())
    except (ClusterError, ImagesError) as error:
        print(f"hack/agent: {error}", file=sys.stderr)
        return 1
    return 0


def program() -> Path:
    """Build the program for this machine; return its path.

    Raises:
        ImagesError: It cannot be built.
    """
    [folder] = build_programs(AGENT_SOURCES, ())
    return folder / AGENT_SOURCES.name


def check(fuzz: str) -> None:
    """Check format, correctness, coverage, licences and size.

    Raises:
        ClusterError: One of them is not as it should be; the tools' output was printed.
    """
    go = find_go(Progress())
    gofmt = Path(go).with_name("gofmt")
    if unformatted := _run([str(gofmt if gofmt.exists() else "gofmt"), "-l", "."], go):
        raise ClusterError(f"not as gofmt writes them: {', '.join(unformatted.split())}")
    _run([go, "vet", "./..."], go)
    _run([go, "mod", "verify"], go)
    _check_modules(_run([go, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."], go))
    packages.install(packages.missing_packages(RACE_DETECTOR), Progress())
    with tempfile.NamedTemporaryFile(suffix=".out") as profile:
        flags = ["-race", "-timeout=10m", "-coverpkg=./...", f"-coverprofile={profile.name}"]
        print(_run([go, "test", *flags, "./..."], go, CGO_ENABLED="1"), end="")
        coverage = parse_total(_run([go, "tool", "cover", f"-func={profile.name}"], go))
    # One after the other, because they measure.
    print(_run([go, "test", "-timeout=10m", "-p=1", "-run=^TestMeasure", "./..."], go), end="")
    print(f"agent: {coverage} % of the statements are covered")
    if coverage < LEAST_COVERAGE:
        raise ClusterError(f"the tests cover {coverage} % of the statements; {LEAST_COVERAGE} % are wanted")
    if fuzz:
        _fuzz(go, fuzz)
    size = program().stat().st_size
    print(f"agent: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        raise ClusterError(f"the program has {size} bytes; {MOST_BYTES} are allowed")


def parse_total(text: str) -> float:
    """Return the percentage in the last line of `go tool cover -func`."""
    found = re.search(r"^total:.*?([0-9.]+)%$", text, re.MULTILINE)
    if found is None:
        raise ClusterError(f"go tool cover told no total: {text[-200:]}")
    return float(found[1])


def _check_modules(text: str) -> None:
    allowed = {"mpiop/agent", "golang.org/x/crypto", "golang.org/x/sys"}
    if others := sorted(set(text.split()) - allowed):
        raise ClusterError(f"the agent is made of the standard library and {', '.join(sorted(allowed))}, and not of {', '.join(others)}")


def _fuzz(go: str, seconds: str) -> None:
    for package in _run([go, "list", "./..."], go).split():
        for target in re.findall(r"^Fuzz\w+", _run([go, "test", "-list", "^Fuzz", package], go), re.MULTILINE):
            # Minimizing an input of a server takes a minute, for which goroutines cover what is never the same.
            limits = ["-fuzztime", seconds, "-fuzzminimizetime", "1x"]
            said = _run([go, "test", "-run", "^$", "-fuzz", f"^{target}$", *limits, package], go)
            print(f"{target}: {said.strip().splitlines()[-3]}")


def _run(command: Sequence[str], go: str, **variables: str) -> str:
    environment = build_environment(go) | variables
    result = subprocess.run(
        command, cwd=AGENT_SOURCES, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if result.returncode != 0:
        print(result.stdout, end="")
        raise ClusterError(f"`{' '.join(command)}` in agent/ ended with {result.returncode}")
    return result.stdout
