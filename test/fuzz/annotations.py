"""Annotations of our own, at random: such as the operator understands together, or each right or wrong by chance, or hostile."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from fuzz.sizes import long_text
from fuzz.values import TEXTS
from mpiop.api import constants as c
from mpiop.controller import names

NAMES = sorted({
    value
    for module in (c, names)
    for constant, value in vars(module).items()
    if constant.startswith("ANNOTATION_") and value != names.ANNOTATION_PREFIX
})
"""All that the operator reads or writes: a stranger may put those of children on a job, too."""
BOOLEANS = ("true", "false")
WORDS: Mapping[str, Sequence[str]] = {
    c.ANNOTATION_SSH_MODE: c.SSH_MODES,
    c.ANNOTATION_SLOTS: (c.SLOTS_AUTO,),
    c.ANNOTATION_SHM: ("8Gi", "64M", "1"),
    c.ANNOTATION_VOLCANO_QUEUE: ("default", "team-a"),
    c.ANNOTATION_MAX_RESTARTS: ("0", "3", "100"),
    c.ANNOTATION_RESTART: c.RESTART_SCOPES,
    c.ANNOTATION_RESTART_ON: (c.ON_INFRASTRUCTURE, c.ON_ANY, f"{c.ON_EXIT_CODES}=3,42"),
    c.ANNOTATION_RESTART_WINDOW: ("24h", "1d12h"),
    c.ANNOTATION_AVOID_FAILED_NODES: BOOLEANS,
    c.ANNOTATION_CHECKPOINT_SIGNAL: c.CHECKPOINT_SIGNALS,
    c.ANNOTATION_CHECKPOINT_GRACE: ("60s", "1m30s"),
    names.ANNOTATION_TTL_DELETES_JOB: BOOLEANS,
    names.ANNOTATION_SSH_AGENT: BOOLEANS,
}
"""Of each annotation that users may set, some values that are right."""
NEEDED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(c.ANNOTATIONS_OF_RESTARTS, (c.ANNOTATION_MAX_RESTARTS,)),
    c.ANNOTATION_CHECKPOINT_SIGNAL: (c.ANNOTATION_SSH_MODE,),
    c.ANNOTATION_CHECKPOINT_GRACE: (c.ANNOTATION_CHECKPOINT_SIGNAL, c.ANNOTATION_SSH_MODE),
}
"""What an annotation is refused without."""
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
    chosen = draw(st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=MOST))
    complete = [*chosen, *(needed for name in chosen for needed in NEEDED.get(name, ()))]
    drawn = {name: draw(st.sampled_from(WORDS[name])) for name in dict.fromkeys(complete)}
    if c.ANNOTATION_CHECKPOINT_SIGNAL in drawn:
        drawn[c.ANNOTATION_SSH_MODE] = c.SSH_INJECTED
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
    """Draw right ones, and put long values in the place of some and beside them."""
    length = draw(st.sampled_from(LENGTHS))
    most = MOST_BYTES // length
    names = draw(st.lists(st.sampled_from(sorted({*NAMES, *WORDS})), min_size=1, max_size=most, unique=True))
    return draw(right_annotations()) | {name: draw(hostile_values(name, length)) for name in names}


OWN_ANNOTATIONS = st.one_of(right_annotations(), any_annotations(), hostile_annotations())
