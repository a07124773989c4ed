"""Finds the words of words.toml in prose, and names a better one for each. proselint matches and words the findings."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proselint.registry.checks import Check, types
from proselint.registry.checks.engine import Fancy, Fast

from wording import prose

_WORDS = Path(__file__).with_name("words.toml")
_LOOKS_AROUND = re.compile(r"\(\?<?[!=]")  # what the faster engine, RE2, does not know
_TRACKED = ("*.md", "src/*.py", "hack/*", "test/*.py")
# Not written by hand, or another project's words.
_NOT_OURS = ("docs/reference/",)
# Their string literals are read by users: messages, help, kubectl explain.
_WITH_MESSAGES = ("src/", "hack/generators/")


@dataclass(frozen=True)
class Finding:
    """One use of a word."""

    path: str
    line: int
    phrase: str
    message: str


def run(root: Path, arguments: list[str]) -> int:
    """Print what is found in the files of `arguments`, else in all; return 1 if that is anything."""
    paths = arguments or tracked(root)
    with _WORDS.open("rb") as stream:
        words = tomllib.load(stream)
    rules = checks(words["better"])
    findings = [finding for path in paths for finding in found(path, (root / path).read_text(), rules)]
    allowed = {(exception["path"], exception["phrase"]) for exception in words.get("exception", [])}
    complaints = [f"{one.path}:{one.line}: {one.message}" for one in findings if (one.path, one.phrase) not in allowed]
    if not arguments:
        unused = allowed - {(one.path, one.phrase) for one in findings}
        complaints += [f"{_WORDS.name}: {path} does not contain {phrase!r}: delete the exception" for path, phrase in sorted(unused)]
    print("\n".join(complaints) or f"prose: ok, {len(paths)} files", file=sys.stderr if complaints else sys.stdout)
    return 1 if complaints else 0


def tracked(root: Path) -> list[str]:
    """Return the paths of the files to check, relative to `root`."""
    names = subprocess.run(["git", "ls-files", "--", *_TRACKED], cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if not name.startswith(_NOT_OURS) and _is_checked(root / name)]


def _is_checked(path: Path) -> bool:
    return path.suffix in {".md", ".py"} or (not path.suffix and path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3"))


def checks(better: dict[str, str]) -> list[Check]:
    """Return one check for each phrase, a regular expression in which a space is any white space."""
    return [
        Check(
            check_type=types.PreferredForms(items={f"(?:{phrase})".replace(" ", r"\s+"): form}),
            engine=Fancy() if _LOOKS_AROUND.search(phrase) else Fast(),
            message="{1!r}: better {0}",
        )
        for phrase, form in better.items()
    ]


def found(path: str, text: str, rules: list[Check]) -> Iterator[Finding]:
    """Yield each use of a word in the prose of `text`, by line."""
    shown = prose.markdown(text) if path.endswith(".md") else prose.python(text, with_messages=path.startswith(_WITH_MESSAGES))
    for result in sorted((result for rule in rules for result in rule.check(shown)), key=lambda result: result.span):
        phrase = " ".join(shown[slice(*result.span)].split()).lower()
        yield Finding(path, shown.count("\n", 0, result.span[0]) + 1, phrase, " ".join(result.message.replace("\\n", " ").split()))
