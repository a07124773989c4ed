"""Hides what is not prose in a file. Every other character keeps its place, so that a finding has its line.

Code becomes `|`, and what only marks prose (`#`, quotes) becomes a space: a phrase that is wrapped over two comments or two string
literals is found, one that code interrupts is not.
"""

import io
import re
import tokenize
from collections.abc import Iterator

_NOT_PROSE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`]*`|<!--.*?-->|\]\([^)\s]*\)|</?\w[^>]*>|\bhttps?://\S+")
_STRING = re.compile(r"(?s)\A(?P<prefix>\w*(?P<end>\"{3}|'{3}|\"|'))(?P<text>.*)(?P=end)\Z")
_STATEMENT_STARTS = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_INVISIBLE = {tokenize.NL, tokenize.COMMENT}


def markdown(text: str) -> str:
    """Return `text` without code, targets of links, HTML and addresses."""
    return _NOT_PROSE.sub(lambda match: _hidden(match[0]), text)


def python(source: str, *, with_messages: bool) -> str:
    """Return the comments and docstrings of `source`, and with `with_messages` the string literals that contain a space."""
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    hidden, pieces, done = _hidden(source), [], 0
    for token in _prose_tokens(source, with_messages=with_messages):
        begin, end = (begins[row - 1] + column for row, column in (token.start, token.end))
        pieces += [hidden[done:begin], markdown(_unmarked(token))]
        done = end
    return "".join([*pieces, hidden[done:]])


def _hidden(text: str) -> str:
    return re.sub(r"\S", "|", text)


def _unmarked(token: tokenize.TokenInfo) -> str:
    """Return the text of a comment or string, with spaces for its marks."""
    if token.type == tokenize.COMMENT:
        return " " + token.string[1:]
    return _STRING.sub(lambda match: " " * len(match["prefix"]) + match["text"] + " " * len(match["end"]), token.string)


def _prose_tokens(source: str, *, with_messages: bool) -> Iterator[tokenize.TokenInfo]:
    before = tokenize.ENCODING
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and before in _STATEMENT_STARTS
        is_message = with_messages and token.type == tokenize.STRING and " " in token.string
        if token.type == tokenize.COMMENT or is_docstring or is_message:
            yield token
        before = before if token.type in _INVISIBLE else token.type
