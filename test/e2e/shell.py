"""Commands as a reader types them: a line of bash in the project's folder, with kubectl on the test's cluster and namespace."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.clusters import ROOT
from e2e.kubectl import CommandError, Kubectl
from e2e.libraries import without_noise

_FENCE = r"^```{language}\n(.*?)^```$"
_ANY_FENCE = re.compile(_FENCE.format(language=r"[^\n]*"), re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PROGRESS = re.compile(r"(created|pulling and creating|starting|running): ")


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
        script = commands_below(document)[heading]
        for shown, written in (replace or {}).items():
            assert shown in script, shown
            script = script.replace(shown, written)
        return self.run(script, timeout_seconds=timeout_seconds)

    def replay(self, document: str, heading: str, *, timeout_seconds: float = 120) -> None:
        """Run the commands of the transcripts that `document` shows below `heading`, and check that they print what it shows.

        Generated names, the Pod that is named, times and the order of lines may differ, and `…` matches anything.
        """
        for command, shown in transcripts_below(document)[heading]:
            printed = self.run(f"{{ {command}; }} 2>&1", timeout_seconds=timeout_seconds).splitlines()
            for line in shown:
                found = next((each for each in printed if re.fullmatch(_pattern(line), each.rstrip())), None)
                assert found is not None, f"{command} did not print {line!r}:\n{printed}"
                printed.remove(found)
            assert [line for line in printed if line.strip() and not _PROGRESS.match(line)] == [], command


def commands_below(document: str) -> dict[str, str]:
    """Return, by heading, the text of the `shell` blocks of a Markdown file that stand directly below it."""
    return blocks_below(document, "shell")


def transcripts_below(document: str) -> dict[str, list[tuple[str, list[str]]]]:
    """Return, by heading, the commands that follow `$ ` in the blocks below it, and the lines that each prints.

    Lines of progress are left out, because they depend on the speed of the cluster.
    """
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for heading, text in blocks_below(document, "console").items():
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            shown = [line.rstrip() for line in lines if line.strip() and not _PROGRESS.match(line)]
            found.setdefault(heading, []).append((command, shown))
    return found


def _pattern(line: str) -> str:
    """Return a regular expression for a line of a transcript."""
    text = re.escape(re.sub(r"\s+", " ", line.strip()))
    for shown, any_like_it in (
        (r"\\-[a-z0-9]{5}\b", r"-[a-z0-9]{5}"),
        (r"\b(\d+[hms])+\b", r"(\d+[dhms])+"),
        (r"\bpod\\ \S+", r"pod\ \S+"),
        (r"…", r".*"),
        (r"\\ ", r"\s+"),
    ):
        text = re.sub(shown, lambda _, like=any_like_it: like, text)  # type: ignore[misc]  # bound at once
    return text


def blocks_below(document: str, language: str) -> dict[str, str]:
    """Return, by heading, the text of the blocks of a Markdown file in `language` that stand directly below it."""
    text = (ROOT / document).read_text(encoding="utf-8")
    headings = [*_HEADING.finditer(_ANY_FENCE.sub(lambda block: " " * len(block[0]), text))]
    fence = re.compile(_FENCE.format(language=language), re.MULTILINE | re.DOTALL)
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    sections = {heading[1]: text[heading.end() : end] for heading, end in zip(headings, ends, strict=True)}
    return {heading: "".join(fence.findall(section)) for heading, section in sections.items() if fence.search(section)}


def open_shell(here: Kubectl, folder: Path, kubeconfig: Path) -> Shell:
    """Return a shell in `folder` for the cluster and namespace of `here`; its settings are written to `kubeconfig`."""
    kubeconfig.write_text(here.run("config", "view", "--raw", "--minify", "--flatten"), encoding="utf-8")
    environment = {**here.environment, "KUBECONFIG": str(kubeconfig)}
    shell = Shell(environment, folder)
    shell.run(f"kubectl config set-context --current --namespace={here.namespace}")
    return shell
