"""Values of a schema of Kubernetes, drawn by hypothesis: often as it asks, and with what breaks programs.

The library that draws from JSON schemas (hypothesis-jsonschema) knows nothing of `x-kubernetes-…`, and has had no release since 2024.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from hypothesis import strategies as st

Schema: TypeAlias = Mapping[str, Any]

MOST_FIELDS = 4
"""Of an object, next to those that it must have: a Pod template has hundreds."""
MOST_DEPTH = 8
INT32, INT64 = 2**31 - 1, 2**63 - 1
NASTY = (
    "",
    " ",
    "a",
    "pi",
    "-",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "../../../../etc",
    "/var/run/secrets/kubernetes.io/serviceaccount",
    "$(cat /etc/shadow)",
    "`id`",
    "$(PATH)",
    "'; rm -rf / #",
    "{{ .Values }}",
    "{0.__class__}",
    "%s%n",
    "a\nb: c",
    "\r\n",
    "\t",
    "\u0000",
    "\u001b[2J",
    "\u202eevil",
    "\u2028",
    "é",
    "🥧",
    "\ufffe",
    "-1",
    "0",
    "1",
    "1e309",
    "NaN",
    "null",
    "true",
    "100m",
    "1Ei",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "a" * 63,
    "a" * 64,
    "a" * 253,
    "a" * 254,
    "x" * 5000,
    "kubeflow.org/mpi-operator",
    "training.kubeflow.org/job-name",
    "mpiop.kubeflow.org/addresses",
    "mpi-job-config",
    "ssh-auth",
    "mpi-launcher",
    "default",
    "kube-system",
)
NUMBERS = (0, 1, 2, 3, 7, 22, 65535, 65536, -1, -INT32 - 1, INT32, INT32 + 1, INT64, -INT64 - 1)
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=("Cs",)), max_size=12))
_SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {"boolean": st.booleans(), "number": st.floats(-1e9, 1e9), "string": TEXTS}
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), st.floats(allow_nan=False, allow_infinity=False, width=32), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
"""Anything, whatever a schema specifies."""


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """Draw a value that is of the type that the schema asks for; rules beyond that are kept more often than not."""
    if "enum" in schema and draw(st.integers(0, 9)):
        return draw(st.sampled_from(schema["enum"]))
    if schema.get("x-kubernetes-int-or-string"):
        return draw(st.one_of(st.sampled_from(NUMBERS), TEXTS))
    match schema.get("type"):
        case "object":
            drawn: Any = draw(objects(schema, depth))
        case "array":
            least = schema.get("minItems", 0)
            count = draw(st.integers(least, least if depth > MOST_DEPTH else 2))
            drawn = [draw(values(schema["items"], depth + 1)) for _ in range(count)]
        case "integer":
            drawn = draw(integers(schema))
        case type_:
            drawn = draw(_SCALARS.get(type_, JSON))
    return drawn


@st.composite
def objects(draw: st.DrawFn, schema: Schema, depth: int) -> dict[str, Any]:
    """Draw an object with what it must have, a few of the fields that it may have, and sometimes one that nobody knows."""
    known: Mapping[str, Schema] = schema.get("properties", {})
    names = [name for name in schema.get("required", ()) if name in known]
    if depth <= MOST_DEPTH and known:
        names += draw(st.lists(st.sampled_from(sorted(known)), max_size=MOST_FIELDS))
    drawn = {name: draw(values(known[name], depth + 1)) for name in dict.fromkeys(names)}
    if "additionalProperties" in schema:
        for name in draw(st.lists(TEXTS, max_size=2)):
            drawn[name] = draw(values(schema["additionalProperties"], depth + 1))
    if not draw(st.integers(0, 19)):
        drawn[draw(TEXTS)] = draw(JSON)
    return drawn


@st.composite
def integers(draw: st.DrawFn, schema: Schema) -> int:
    """Draw a small number, or one at an edge."""
    least, most = schema.get("minimum", -INT32), schema.get("maximum", INT64 if schema.get("format") == "int64" else INT32)
    return draw(st.one_of(st.integers(max(least, 0), min(most, 3)), st.sampled_from((least, most)), st.sampled_from(NUMBERS)))
