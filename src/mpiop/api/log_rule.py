"""What a row of `log_rules` consists of."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogRule:
    """A text and what it means.

    Attributes:
        name: Of the cause, in one word.
        when: When the libraries print it, for the documents.
        pattern: Finds the text.
        facts: Sentence with the groups of the pattern, and perhaps `{signal}`, the name of the signal `code`.
        advice: What a user should do.
        is_last: Whether the last match counts instead of the first.
        shows_rank: Whether the end of the first rank that failed is added to the facts.
    """

    name: str
    when: str
    pattern: re.Pattern[str]
    facts: str
    advice: str
    is_last: bool = False
    shows_rank: bool = False


def rule(name: str, when: str, pattern: str, facts: str, advice: str, **options: bool) -> LogRule:
    """Return a row; its pattern is matched in each line."""
    return LogRule(name, when, re.compile(pattern, re.MULTILINE), facts, advice, **options)
