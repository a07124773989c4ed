"""Random jobs try every annotation that users may set."""

import re
from typing import Any

from hypothesis import given, settings

from fuzz.annotations import WORDS, right_annotations
from fuzz.jobs import good_job, random_jobs
from generators.labels import labels_page
from mpiop.api.parse import parse_mpijob
from mpiop.api.validation import validate


def test_each_annotation_that_users_may_set_has_words_that_are_right() -> None:
    assert set(WORDS) == set(re.findall(r"^\| `([^`]+)` \| On an MPIJob", labels_page(), re.MULTILINE))


@settings(max_examples=200, database=None, deadline=None)
@given(right_annotations())
def test_what_random_jobs_hold_for_right_is_understood(annotations: dict[str, str]) -> None:
    job: Any = good_job("pi")
    job["metadata"]["annotations"] = annotations
    assert validate(parse_mpijob(job)) == ()


def test_random_jobs_have_each_of_them_right() -> None:
    annotations = [each.job["metadata"].get("annotations", {}) for each in random_jobs(400, 1)]
    assert {name for each in annotations for name, value in each.items() if value in WORDS.get(name, ())} == set(WORDS)


def test_a_change_of_one_role_is_none_of_the_other() -> None:
    roles = good_job("pi")["spec"]["mpiReplicaSpecs"]
    roles["Worker"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert roles["Launcher"]["template"]["spec"]["containers"][0]["image"] != "other"
