"""What a launcher's log says about its failure, by the rows of `mpiop.api.log_rules`.

The operator asks if it may read logs; `kubectl mpi why` asks with the user's own permission.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mpiop.api.log_rules import READ, RULES, LogRule
from mpiop.api.mpi_implementations import IMPLEMENTATIONS

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
    7: "Often /dev/shm is too small: it has 64 MiB unless the annotation mpiop.kubeflow.org/shm says 2Gi (kubectl mpi run --shm 2Gi).",
    9: "Often the container has used more memory than its limit: raise it, or use more workers.",
}
_CORE_DUMPED: Final = 128
_SIGNALS: Final = {str(number + core): advice for number, advice in _BY_SIGNAL.items() for core in (0, _CORE_DUMPED)}
_RANK_RULES: Final = frozenset({"MpiAbort", "ProgramFailed", "ProgramKilled"})


def finding(log: str) -> Finding | None:
    """Return what the end of a log says about its launcher's failure; None if no row applies."""
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
    return template.format(**{name: (value or "").strip()[:_MOST_IN_FACTS] for name, value in match.groupdict().items()})


def _normalized(log: str) -> str:
    """Return the last lines without the tags of ranks, each cut to what a pattern may look at."""
    lines = _LINE_ENDS.split(log)[-_MOST_LINES:]
    return "\n".join(_TAG.sub("", line[:_MOST_IN_LINE]) for line in lines)
