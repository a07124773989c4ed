"""Annotations of our own, at random: such as the operator understands together, or each right or wrong by chance, or hostile."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from fuzz.sizes import long_text
from fuzz.values import TEXTS
from mpiop.api.annotations import JOB_ANNOTATIONS
from mpiop.controller import names

NAMES = sorted({row.name for row in (*JOB_ANNOTATIONS, *names.ANNOTATIONS)})
"""All that the operator reads or writes: a stranger may put those of children on a job, too."""
ROWS = {row.name: row for row in JOB_ANNOTATIONS}
WORDS: Mapping[str, Sequence[str]] = {name: row.examples for name, row in ROWS.items()}
"""Of each annotation that users may set, some values that are right."""
MOST = 4
CONTROL = "".join(map(chr, range(1, 32)))
REPEATED = (CONTROL, "9", "-", "9.", "1h", "1d", "1Gi", "1,", "9,", "é", "🥧", "\u202e", "\u2028", " ", "\n", "\x7f", "{")
"""Control characters, digits, units, lists and blanks, of which a hostile value has thousands."""
LENGTHS = (*[5_000] * 5, 200_000)
"""Bytes: more digits than Python reads as a number, or nearly as many as an object may have."""
MOST_BYTES = 256 * 1024
"""Of all annotations of an object."""


@st.composite
def right_annotations(draw: st.DrawFn) -> dict[str, str]:
    """Draw some that users may set, each with a right value, and what they need."""
    drawn = dict[str, str]()
    for name in draw(st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=MOST)):
        drawn[name] = drawn.get(name) or draw(st.sampled_from(WORDS[name]))
        need = ROWS[name].needs
        while need is not None:
            drawn[need.name] = need.value or drawn.get(need.name) or draw(st.sampled_from(WORDS[need.name]))
            need = ROWS[need.name].needs
    return drawn


@st.composite
def any_annotations(draw: st.DrawFn) -> dict[str, str]:
    """Draw some, each with a right value or any text, whether or not they go together."""
    drawn = dict[str, str]()
    for name in draw(st.lists(st.sampled_from([*NAMES, *WORDS]), min_size=1, max_size=MOST)):
        is_right = name in WORDS and draw(st.booleans())
        drawn[name] = draw(st.sampled_from(WORDS[name]) if is_right else TEXTS)
    return drawn


@st.composite
def hostile_values(draw: st.DrawFn, name: str, length: int) -> str:
    """Draw a value of about `length` bytes for an annotation: sometimes it begins or ends as a right one does."""
    around = st.sampled_from(("", "", *WORDS.get(name, ())))
    return draw(around) + draw(long_text(REPEATED, (length,))) + draw(around)


@st.composite
def hostile_annotations(draw: st.DrawFn) -> dict[str, str]:
    """Draw valid ones, replace some by long values, and add others."""
    length = draw(st.sampled_from(LENGTHS))
    most = MOST_BYTES // length
    names = draw(st.lists(st.sampled_from(sorted({*NAMES, *WORDS})), min_size=1, max_size=most, unique=True))
    return draw(right_annotations()) | {name: draw(hostile_values(name, length)) for name in names}


OWN_ANNOTATIONS = st.one_of(right_annotations(), any_annotations(), hostile_annotations())
