"""TokenReview and SubjectAccessReview of the fake API server: answered, never stored."""

from dataclasses import dataclass, field
from typing import Any

from fakes.semantics import Json, copied
from mpiop.kube.request import Request
from mpiop.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

REVIEWS = (TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS)


@dataclass(slots=True)
class Reviews:
    """Who is known, and who may what.

    Attributes:
        users: By token, what a TokenReview reports of its bearer.
        allowed: Verb, path and the user or group that may.
    """

    users: dict[str, Json] = field(default_factory=dict[str, Json])
    allowed: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])

    def create(self, request: Request) -> Json:
        body: Any = copied(request.body)
        status = self._token(body["spec"]) if request.resource == TOKEN_REVIEWS else self._access(body["spec"])
        fresh = {"apiVersion": request.resource.api_version, "kind": request.resource.kind}
        return {**body, **fresh, "metadata": {"creationTimestamp": None}, "status": status}

    def _token(self, spec: Json) -> Json:
        user = self.users.get(spec["token"])
        if user is None:
            return {"user": {}, "error": "[invalid bearer token]"}
        return {"authenticated": True, "user": user, "audiences": ["https://kubernetes.default.svc"]}

    def _access(self, spec: Json) -> Json:
        attributes = spec["nonResourceAttributes"]
        wish = attributes["verb"], attributes["path"]
        if any((*wish, who) in self.allowed for who in (spec["user"], *spec.get("groups", ()))):
            return {"allowed": True, "reason": "RBAC: allowed by ClusterRoleBinding"}
        return {"allowed": False}
