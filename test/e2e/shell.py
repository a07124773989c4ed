"""Commands as a reader types them: a line of bash in the project's folder, with kubectl on the test's cluster and namespace."""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.clusters import ROOT
from e2e.commands import without_noise
from e2e.kubectl import CommandError, Kubectl

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PROGRESS = re.compile(r"(created|pulling and creating|starting|running): |waits for \S+ \(")
_SHOWN_FAILURE = re.compile(r"error|exit code|fail|problem", re.IGNORECASE)
_SUBMITTED = re.compile(r"-(?=[a-z]*\d)[0-9a-f]{6}\b")
"""The end of the name of a job that `submit` has chosen."""
_ALIKE = {
    _SUBMITTED.pattern: r"(-[0-9a-f]{6})",
    r"-[a-z0-9]{5}\b": r"-[a-z0-9]{5}",
    r"(?<=\bpod )\S+": r"\S+",
    r"\b\d{4}-\d\d-\d\d\b": r"\d{4}-\d\d-\d\d",
    r"\b\d\d:\d\d(?::\d\d)?\b": r"\d\d:\d\d(?::\d\d)?",
    r"\b(?:\d+(?:\.\d+)?[dhms])+\b": r"(?:\d+(?:\.\d+)?[dhms])+",
    r"\b\d+(?= s\b)": r"\d+",
    r"\b\d+Mi\b": r"\d+Mi",
    r"\d+(?:\.\d+)+": r"\d+(?:\.\d+)+",
    r"\|[-~.=x ]+\|": r"\|[-~.=x ]+\|",
    r"…": r".*",
    r"\s+": r"\s+",
}
"""What may differ in a line, and what may be there instead: names, the Pod that is named, times, sizes, decimals, bars of a timeline."""
_DIFFERING = re.compile("|".join(f"({shown})" for shown in _ALIKE))


@dataclass(frozen=True)
class Shell:
    """A shell whose kubectl needs no `--namespace`, as that of a reader who works in one."""

    environment: Mapping[str, str] = field(repr=False)
    folder: Path

    def attempt(self, script: str, *, timeout_seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run `script` until its first command that fails, and return how it ended."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )

    def run(self, script: str, *, timeout_seconds: float = 120) -> str:
        """Run `script` and return what it printed.

        Raises:
            CommandError: One of its commands failed.
        """
        ended = self.attempt(script, timeout_seconds=timeout_seconds)
        if ended.returncode:
            raise CommandError(f"{script}: exit code {ended.returncode}: {ended.stderr.strip() or ended.stdout.strip()}")
        return without_noise(ended.stdout)

    def follow(self, document: str, heading: str, replace: Mapping[str, str] | None = None, *, timeout_seconds: float = 120) -> str:
        """Run the commands that `document` shows below `heading`, and return what they printed.

        Args:
            document: Path of a Markdown file from the project's folder.
            heading: Text of the heading, without its marks.
            replace: What the reader writes instead of a part of the commands; each part must be there.
            timeout_seconds: For all of them together.
        """
        return self.run(_replaced(commands_below(document)[heading], replace), timeout_seconds=timeout_seconds)

    def replay(self, document: str, heading: str, replace: Mapping[str, str] | None = None, *, timeout_seconds: float = 120) -> None:
        """Run the commands of the transcripts that `document` shows below `heading`, and check that they print what it shows.

        Generated names, the Pod that is named, addresses, times, decimals and the order of lines may differ. `…` matches anything; a line
        of only `…` matches any lines. A command may fail only if its output or the next command, `echo $?`, shows it. A reader types more
        slowly than a script: a test waits by putting `kubectl wait` before a command.

        Args:
            document: Path of a Markdown file from the project's folder.
            heading: Text of the heading, without its marks.
            replace: What is typed or printed here instead of a part of the transcripts; each part must be there.
            timeout_seconds: For each of them.
        """
        text, code = _replaced(transcripts_below(document)[heading], replace), 0
        while text:
            (command, shown), text = _first_step(text)
            ended = self.attempt(f"exec 2>&1; set +e; (exit {code}); {command}", timeout_seconds=timeout_seconds)
            code = ended.returncode
            assert code == 0 or _SHOWN_FAILURE.search("".join(shown)) or text.startswith("$ echo $?\n"), f"{command}: {ended.stdout}"
            for example, name in _compare(command, shown, without_noise(ended.stdout)).items():
                text = text.replace(example, name)


def _replaced(text: str, replace: Mapping[str, str] | None) -> str:
    for shown, written in (replace or {}).items():
        assert shown in text, shown
        text = text.replace(shown, written)
    return text


def _first_step(text: str) -> tuple[tuple[str, list[str]], str]:
    """Return the first command of transcripts with the lines that it prints, and the transcripts after it.

    Lines of progress are left out, because they depend on the speed of the cluster.
    """
    step, mark, rest = text.removeprefix("$ ").partition("\n$ ")
    command, *lines = step.splitlines()
    return (command, _without_progress(lines)), f"$ {rest}" if mark else ""


def _without_progress(lines: Iterable[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip() and not _PROGRESS.match(line)]


def _compare(command: str, shown: Sequence[str], printed: str) -> dict[str, str]:
    """Check that a command has printed what is shown, and return the ends of names that it has chosen, by those that are shown."""
    left, names = _without_progress(printed.splitlines()), dict[str, str]()
    for line in shown:
        if line == "…":
            continue
        matches = (re.fullmatch(_pattern(line), each) for each in left)
        found = next((each for each in matches if each), None)
        assert found is not None, f"{command} did not print {line!r}:\n{printed}"
        left.remove(found.string)
        names |= zip(_SUBMITTED.findall(line), found.groups(), strict=True)
    assert not left or "…" in shown, f"{command} also printed {left}"
    return names


def commands_below(document: str) -> dict[str, str]:
    """Return, by heading, the text of the `shell` blocks of a Markdown file that stand directly below it."""
    return blocks_below(document, "shell")


def transcripts_below(document: str) -> dict[str, str]:
    """Return, by heading, the text of the transcripts: commands after `$ `, each with what it prints."""
    return blocks_below(document, "console")


def _pattern(line: str) -> str:
    """Return a regular expression for a line of a transcript."""
    pattern, end = "", 0
    for match in _DIFFERING.finditer(line):
        assert match.lastindex is not None
        pattern += re.escape(line[end : match.start()]) + [*_ALIKE.values()][match.lastindex - 1]
        end = match.end()
    return pattern + re.escape(line[end:])


def blocks_below(document: str, language: str) -> dict[str, str]:
    """Return, by heading, the text of the blocks of a Markdown file in `language` that stand directly below it."""
    text = (ROOT / document).read_text(encoding="utf-8")
    headings = [*_HEADING.finditer(_BLOCK.sub(lambda block: " " * len(block[0]), text))]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    found: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=True):
        for name, block in _BLOCK.findall(text[heading.end() : end]):
            if name == language:
                found[heading[1]] = found.get(heading[1], "") + block
    return found


def open_shell(here: Kubectl, folder: Path, kubeconfig: Path) -> Shell:
    """Return a shell in `folder` for the cluster and namespace of `here`; its settings are written to `kubeconfig`."""
    kubeconfig.write_text(here.run("config", "view", "--raw", "--minify", "--flatten"), encoding="utf-8")
    environment = {**here.environment, "KUBECONFIG": str(kubeconfig)}
    shell = Shell(environment, folder)
    shell.run(f"kubectl config set-context --current --namespace={here.namespace}")
    return shell
