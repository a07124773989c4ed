"""The rights for gang scheduling, which nothing else uses, by the audit log."""

from collections.abc import Mapping

from conformance.world import World
from e2e.audit import Right
from e2e.rights import OPTIONAL, WHEN_A_NAME_IS_TAKEN, WITHOUT_WATCH_LISTS, granted

OTHERS = ("scheduling.volcano.sh", "scheduling.x-k8s.io")
"""Groups of the schedulers whose gangs live here; those of Kubernetes itself need feature gates: make e2e SUITE=gang."""
CHANGED = "the number of workers changes (make e2e SUITE=volcano and SUITE=coscheduling)"
UNUSED: Mapping[Right, str] = {
    Right(verb, group, "podgroups"): reason
    for group in OTHERS
    for verb, reason in (("get", WHEN_A_NAME_IS_TAKEN), ("list", WITHOUT_WATCH_LISTS), ("patch", CHANGED))
} | {Right("list", "scheduling.k8s.io", "priorityclasses"): WITHOUT_WATCH_LISTS}


def test_the_operator_is_refused_nothing_but_what_is_optional(world: World) -> None:
    assert world.rights.refused <= set(OPTIONAL)


def test_each_right_over_gangs_is_used_or_has_a_reason(world: World) -> None:
    rights = {right for right in granted() if right.group in OTHERS or right.resource == "priorityclasses"}
    assert sorted(rights - world.rights.used - set(UNUSED)) == []


def test_each_exception_is_a_right_that_the_operator_has() -> None:
    assert sorted(set(UNUSED) - set(granted())) == []
