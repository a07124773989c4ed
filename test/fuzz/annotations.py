"""Annotations of our own, at random: half of the time such as the operator understands together, else each right or wrong by chance."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

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


OWN_ANNOTATIONS = st.booleans().flatmap(lambda are_right: right_annotations() if are_right else any_annotations())
