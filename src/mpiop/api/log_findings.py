"""Finds in a launcher's log why it failed, with the rows of `mpiop.api.log_rules`.

The operator asks if it may read logs; `kubectl mpi why` asks with the user's own permission.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from signal import Signals
from typing import Final

from mpiop.api.log_rule import LogRule
from mpiop.api.log_rules import READ, RULES
from mpiop.api.mpi_implementations import IMPLEMENTATIONS
from mpiop.kube.text import whole_number

_MOST_LINES: Final = 2000
_MOST_IN_LINE: Final = 1000
_MOST_IN_FACTS: Final = 200
"""Characters of each text that is taken from the log."""
_LINE_ENDS: Final = re.compile(r"[\r\n]+")
_BY_PYTORCH: Final = r"\[rank\d+\]: ?"
_OF_LIBRARIES: Final = [tag for row in IMPLEMENTATIONS.values() for tag in (f"{row.tag}(?:{row.tag_gap})?", row.line_tag) if tag]
_TAGS: Final = (*(tag.replace("?P<rank>", "?:") for tag in _OF_LIBRARIES), _BY_PYTORCH)
_TAG: Final = re.compile(f"^(?:{'|'.join(dict.fromkeys(_TAGS))})")
"""What `mpirun` puts before a line of a rank if it is asked to, and what PyTorch does."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a log reports: the name of the rule, a sentence without a final period, and advice."""

    name: str
    facts: str
    advice: str

    def __str__(self) -> str:
        """Return facts and advice."""
        return f"{self.facts}. {self.advice}"


_BY_SIGNAL: Final[Mapping[int, str]] = {
    4: "The program has instructions that the processor of that node does not have: compile it for all nodes.",
    7: "Often /dev/shm is too small: it has 64 MiB unless the annotation mpiop.kubeflow.org/shm sets more (kubectl mpi run --shm 2Gi).",
    9: "Often the container has used more memory than its limit: raise it, or use more workers.",
}
_CORE_DUMPED: Final = 128
_SIGNALS: Final = {str(number + core): advice for number, advice in _BY_SIGNAL.items() for core in (0, _CORE_DUMPED)}
_SIGNAL_NAMES: Final[Mapping[int, str]] = {signal.value: signal.name for signal in Signals}
_RANK_RULES: Final = frozenset({"MpiAbort", "ProgramFailed", "ProgramKilled"})


def finding(log: str) -> Finding | None:
    """Return why the launcher failed, from the end of its log; None if no row matches."""
    text = _normalized(log)
    found = _first(text, lambda _: True)
    if found is None:
        return None
    rule, match = found
    facts = _text(rule.facts, match)
    if rule.shows_rank and (first_rank := _first(text, lambda other: other.name in _RANK_RULES)) is not None:
        facts = f"{facts} ({_text(first_rank[0].facts, first_rank[1])})"
    return Finding(rule.name, facts, _text(rule.advice, match) or _SIGNALS.get(match["code"], READ))


def _first(text: str, is_wanted: Callable[[LogRule], bool]) -> tuple[LogRule, re.Match[str]] | None:
    for rule in filter(is_wanted, RULES):
        matches = list(rule.pattern.finditer(text)) if rule.is_last else [rule.pattern.search(text)]
        if matches and (match := matches[-1]) is not None:
            return rule, match
    return None


def _text(template: str, match: re.Match[str]) -> str:
    groups = {name: (value or "").strip()[:_MOST_IN_FACTS] for name, value in match.groupdict().items()}
    return template.format(signal=_signal(groups.get("code", "")), **groups)


def _signal(code: str) -> str:
    """Return the name of a signal by its number, which may have 128 more."""
    number = (whole_number(code) or 0) % _CORE_DUMPED
    return _SIGNAL_NAMES.get(number, f"signal {number}")


def _normalized(log: str) -> str:
    """Return the last lines without the tags of ranks, each cut to the length that patterns are matched against.

    Blank lines are left out: the white space of a pattern would run over all of them.
    """
    lines = (_TAG.sub("", line[:_MOST_IN_LINE]) for line in _LINE_ENDS.split(log)[-_MOST_LINES:])
    return "\n".join(line for line in lines if line and not line.isspace())
