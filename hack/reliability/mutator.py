"""Small changes of a module, one at a time: each should make some test fail.

A tool of our own and not mutmut or cosmic-ray: it shares the copies and the runs of the deliberate defects, needs no configuration or
database, and changes nothing but one piece of text. Changed are comparisons, `and`/`or`/`not`, conditions, arithmetic, numbers, True and
False, and statements are left out. Annotations, docstrings, log lines, formatted texts and protocols stay.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.Mod: "*"}
_LOGGERS = ("log.", "self._log.", "_log.")


@dataclass(frozen=True)
class Mutant:
    """A change of one place.

    Attributes:
        function: Function or class that it is in, with those around it, such as `Store.put`; "" is the module itself.
        line: Where it is.
        old: What stands there.
        new: What stands there instead.
        text: The whole module with it.
    """

    function: str
    line: int
    old: str
    new: str
    text: str

    def __str__(self) -> str:
        """Render it on one line."""
        return f"{self.line} {self.function}: {' '.join(self.old.split())[:70]!r} -> {' '.join(self.new.split())[:70]!r}"


def mutants_of(text: str) -> list[Mutant]:
    """Return every mutant of the module `text`, in the order of their places; each can be compiled."""
    found = [mutant for change in _changes(ast.parse(text), text, "") if (mutant := _mutant(text, change)) is not None]
    return sorted(dict.fromkeys(found), key=lambda mutant: mutant.line)


class _Change(NamedTuple):
    function: str
    node: ast.stmt | ast.expr
    new: str


def _mutant(text: str, change: _Change) -> Mutant | None:
    function, node, new = change
    old = ast.get_source_segment(text, node) or ""
    if not old or old == new or node.end_lineno is None or node.end_col_offset is None:
        return None
    lines = text.encode().splitlines(keepends=True)
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    changed = (text.encode()[:begin] + new.encode() + text.encode()[end:]).decode()
    try:
        compile(changed, "mutant", "exec")
    except SyntaxError:
        return None
    return Mutant(function, node.lineno, old, new, changed)


def _changes(node: ast.AST, text: str, function: str) -> Iterator[_Change]:
    """Yield what to change in `node`, which stands in `function`, and below it."""
    if _is_out_of_scope(node):
        return
    if isinstance(node, ast.stmt):
        yield from (_Change(function, *change) for change in _of_statement(node))
    if isinstance(node, ast.expr):
        yield from (_Change(function, *change) for change in _of_expression(node, text))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, text, function)


def _is_out_of_scope(node: ast.AST) -> bool:
    match node:
        case ast.ClassDef(bases=bases):
            return any("Protocol" in ast.unparse(base) for base in bases)
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return ast.unparse(func).startswith(_LOGGERS)
        case ast.Assign(value=ast.Call(func=func)):
            return ast.unparse(func) in {"TypeVar", "structlog.get_logger", "logging.getLogger"}
        case _:
            return False


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    match node:
        case ast.Delete(targets=[ast.Name()]):
            pass  # says to a reader that the name is not needed
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Delete() | ast.Break() | ast.Continue():
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute()]) | ast.Assign(targets=[ast.Subscript()]):
            yield node, "pass"
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant | ast.Compare | ast.UnaryOp):
            yield test, f"not ({ast.unparse(test)})"
        case _:
            pass


def _of_expression(node: ast.expr, text: str) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    def source(part: ast.expr) -> str:
        return ast.get_source_segment(text, part) or ""

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield node, f"{source(left)} {_COMPARISONS[type(op)]} {source(right)}"
        case ast.BoolOp(op=op, values=values):
            joint = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({joint.join(f'({source(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({source(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not isinstance(left, ast.Constant | ast.JoinedStr):
            yield node, f"(({source(left)}) {_ARITHMETIC[type(op)]} ({source(right)}))"
        case ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield test, f"(not ({source(test)}))"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int() | float() as number):
            yield node, repr(number + 1)
        case _:
            pass
