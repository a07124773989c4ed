"""Splits a script into its commands as a shell reads it, with the words of each command that need no shell.

A shell runs the script; this module decides nothing about it. A script that it does not understand costs a report, never a result.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_PREFIXES: Final = frozenset({"command", "env", "exec", "nice", "nohup", "numactl", "stdbuf", "time", "timeout"})
"""Commands that run another one, the first of their words that is a launcher."""
_COMMANDS: Final = frozenset({"command", "declaration_command"})
_WORDS: Final = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_QUOTED: Final = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_SHELLS: Final = frozenset({"bash", "sh", "dash", "ksh", "zsh"})


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command.

    Attributes:
        line: Where it begins, from 1.
        words: The command and its arguments without quotes; None for each word that needs a shell.
        text: As it is written.
        is_background: Whether `&` follows it, or what it is a part of.
        is_plain: Whether it is a line of its own: no redirection, pipe, condition, loop or variable assignment belongs to it.
    """

    line: int
    words: tuple[str | None, ...]
    text: str
    is_background: bool
    is_plain: bool

    def behind_prefixes(self, launchers: Sequence[str]) -> tuple[str | None, ...]:
        """Return the words from a launcher on, also behind `time` and the like; () if there is none."""
        if _base(self.words[0]) in _PREFIXES:
            found = next((number for number, word in enumerate(self.words) if _base(word) in launchers), None)
        else:
            found = 0 if _base(self.words[0]) in launchers else None
        return () if found is None else (_base(self.words[found]), *self.words[found + 1 :])


def interpreter(text: str) -> list[str]:
    """Return the command line of the script's first line, without the option for a login shell; /bin/sh if it has none."""
    first = text.partition("\n")[0].rstrip("\r")
    words = first[2:].split() if first.startswith("#!") else []
    return [word for word in words if word not in {"-l", "--login"}] or ["/bin/sh"]


def read_commands(text: str) -> list[Command] | None:
    """Return the commands in their order; None if no shell is to read the script, or it is not understood."""
    if not {_base(word) for word in interpreter(text)} & _SHELLS:
        return None
    root = Parser(Language(tree_sitter_bash.language())).parse(text.encode()).root_node
    return None if root.has_error else list(_commands(root))


def _commands(root: Node) -> Iterator[Command]:
    tops = {node.id for node in root.children}
    waiting = [(root, False)]
    while waiting:
        node, is_background = waiting.pop()
        if node.type in _COMMANDS:
            yield _command(node, is_top=node.id in tops, is_background=is_background)
        elif node.is_named and node.type != "comment" and node.id in tops:
            yield Command(node.start_point.row + 1, (None,), _text(node), is_background=False, is_plain=False)
        after = ""
        for child in reversed(node.children):
            waiting.append((child, is_background or after == "&"))
            after = child.type


def _command(node: Node, *, is_top: bool, is_background: bool) -> Command:
    texts = [child for child in node.children if child.type != "herestring_redirect"]
    is_plain = (
        is_top
        and not is_background
        and len(texts) == len(node.children)
        and all(child.type != "variable_assignment" for child in node.children if node.type == "command")
    )
    words = tuple(_word(child) for child in texts if not (node.type == "command" and child.type == "variable_assignment")) or (None,)
    is_plain &= None in words or _words_of_shlex(_text(node)) == words
    return Command(node.start_point.row + 1, words, _text(node), is_background, is_plain)


def _words_of_shlex(text: str) -> tuple[str, ...]:
    """Return the words as a second reader finds them: tree-sitter splits a word at a backslash that ends its line."""
    try:
        return tuple(shlex.split(text.replace("\\\n", "")))
    except ValueError:
        return ()


def _word(node: Node) -> str | None:
    """Return a word without its quotes, or None if a shell would expand it."""
    text = _text(node)
    if node.type == "command_name":
        return _word(node.children[0])
    if node.type == "variable_assignment":
        return _static(text) if all(child.type in {*_WORDS, "variable_name", "="} for child in node.children) else None
    return _static(text) if node.type in _WORDS or not node.is_named else None


def _static(text: str) -> str | None:
    """Return a word if its quotes mean the same to shlex and to a shell, and nothing in it is expanded."""
    if any(part.startswith('"') and re.search(r"[$`\\]", part) for part in _QUOTED.findall(text)):
        return None
    if "\\\n" in text or re.search(r"[$`*?\[{!]|^~|[=:]~", _QUOTED.sub("", text)):
        return None
    try:
        found = shlex.split(text)
    except ValueError:
        return None
    return found[0] if len(found) == 1 else None


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _base(word: str | None) -> str:
    return (word or "").rpartition("/")[2]
