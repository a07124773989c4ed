"""What an API server answers when it is asked who a token is and what a user may, as far as secure metrics rely on it."""

import asyncio
from typing import Any

from contract_subject import Subject
from mpiop.kube.objects import Object
from mpiop.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource


async def review(subject: Subject, resource: Resource, spec: dict[str, Any]) -> Object:
    return await subject.client.create(resource, {"metadata": {}, "spec": spec})


async def is_allowed(subject: Subject, spec: dict[str, Any]) -> bool:
    return bool((await review(subject, SUBJECT_ACCESS_REVIEWS, spec))["status"]["allowed"])


async def test_a_token_that_nobody_issued_is_not_authenticated(subject: Subject) -> None:
    answer = await review(subject, TOKEN_REVIEWS, {"token": "nobody.issued.this"})
    assert answer.get("kind") == "TokenReview"
    assert not answer["status"].get("authenticated")
    assert not answer["status"]["user"].get("username")
    assert "invalid bearer token" in answer["status"]["error"]


async def test_a_review_repeats_the_token_and_is_not_stored(subject: Subject) -> None:
    answer = await review(subject, TOKEN_REVIEWS, {"token": "nobody.issued.this"})
    assert answer["spec"]["token"] == "nobody.issued.this"  # noqa: S105 - nobody did
    assert not answer["metadata"].get("uid")
    assert not answer["metadata"].get("resourceVersion")


async def test_the_token_of_a_service_account_tells_user_and_groups(subject: Subject) -> None:
    user, token = await subject.service_account("scraper")
    status = (await review(subject, TOKEN_REVIEWS, {"token": token}))["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == user
    assert status["user"]["uid"]
    assert {"system:serviceaccounts", "system:authenticated"} <= set(status["user"]["groups"])
    assert all(isinstance(values, list) for values in status["user"]["extra"].values())


async def test_access_is_what_a_rule_on_the_path_gives_to_user_or_group(subject: Subject) -> None:
    group = f"team-{subject.namespace}"
    spec: dict[str, Any] = {"user": "jane", "nonResourceAttributes": {"path": f"/{group}", "verb": "get"}}
    assert not await is_allowed(subject, spec)
    await subject.let_get(f"/{group}", group)
    async with asyncio.timeout(30):
        while not await is_allowed(subject, spec | {"groups": [group], "uid": "1", "extra": {"scopes": ["all"]}}):  # noqa: ASYNC110 - the state of a server
            await asyncio.sleep(0.2)  # the authorizer follows a watch
    assert not await is_allowed(subject, spec)
    assert not await is_allowed(subject, spec | {"groups": [group], "nonResourceAttributes": {"path": "/elsewhere", "verb": "get"}})
