"""Verdicts about tokens: how long they are cached, and which answers grant nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.kube.transport import KubeRequest, LineStream
from generator.rpc.auth.tokens import GRANTED_TTL_S, MAX_CACHED_REVIEWS, REFUSED_TTL_S, TokenReviews
from generator.rpc.status_errors import CallFailure, FailureKind
from topology.model.errors import InvariantError, KubeUnavailable

SOON_S = 30.0
ALICE = {"username": "alice", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}
GOOD = {"authenticated": True, "audiences": ["toponaut"], "user": ALICE}


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Reviewer:
    """An API server with scripted answers to reviews."""

    def __init__(self) -> None:
        self.token: object = GOOD
        self.access: object = {"allowed": True}
        self.is_silent = False
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        assert 0 < timeout_s <= 5
        assert isinstance(request.body, dict)
        self.asked.append((request.path.rpartition("/")[2], request.body["spec"]))
        if self.is_silent:
            raise KubeUnavailable("silent")
        is_token = request.path.endswith("tokenreviews")
        return json.dumps({"status": self.token if is_token else self.access}).encode()

    def open_stream(self, request: KubeRequest, *, idle_timeout_s: float) -> LineStream:
        raise InvariantError(f"nobody follows: {request} {idle_timeout_s}")


class ReviewCase:
    def __init__(self) -> None:
        self.server = Reviewer()
        self.clock = Clock()
        self.reviews = TokenReviews(self.server, "toponaut", clock=self.clock)

    def verdict(self, bearer: str = "t") -> FailureKind | None:
        judged = self.reviews.authenticate(bearer, timeout_s=SOON_S)
        return judged.kind if isinstance(judged, CallFailure) else None

    @property
    def num_asked(self) -> int:
        return len(self.server.asked)


def test_it_reviews_the_token_and_then_the_right() -> None:
    judging = ReviewCase()
    assert judging.reviews.authenticate("secret", timeout_s=SOON_S) == "alice"
    attributes = {"group": "toponaut.io", "resource": "placements", "verb": "create"}
    assert judging.server.asked == [
        ("tokenreviews", {"token": "secret", "audiences": ["toponaut"]}),
        (
            "subjectaccessreviews",
            {
                "user": "alice",
                "uid": "1",
                "groups": ["g"],
                "extra": {"k": ["v"]},
                "resourceAttributes": attributes,
            },
        ),
    ]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"authenticated": False}, id="it is not valid"),
        pytest.param({**GOOD, "authenticated": "true"}, id="the answer is no boolean"),
        pytest.param({**GOOD, "audiences": ["other"]}, id="it is for another audience"),
        pytest.param({"authenticated": True, "user": ALICE}, id="the audience was not checked"),
        pytest.param({**GOOD, "audiences": "toponaut"}, id="audiences are no list"),
        pytest.param({**GOOD, "user": {}}, id="it has no user"),
        pytest.param({**GOOD, "user": "alice"}, id="the user is no object"),
        pytest.param(None, id="there is no status"),
    ],
)
def test_it_rejects_a_token_where(status: object) -> None:
    judging = ReviewCase()
    judging.server.token = status
    assert judging.verdict() is FailureKind.UNAUTHENTICATED
    assert judging.num_asked == 1


@pytest.mark.parametrize("status", [{"allowed": False}, {}, {"allowed": "yes"}, None], ids=str)
def test_it_refuses_a_user_without_the_right(status: object) -> None:
    judging = ReviewCase()
    judging.server.access = status
    assert judging.verdict() is FailureKind.FORBIDDEN


def test_it_caches_a_grant_for_a_minute() -> None:
    judging = ReviewCase()
    assert judging.verdict() is None
    judging.server.token = {}
    judging.clock.now_s += GRANTED_TTL_S - 0.001
    assert judging.verdict() is None
    assert judging.num_asked == 2
    judging.clock.now_s += 0.001
    assert judging.verdict() is FailureKind.UNAUTHENTICATED


def test_it_caches_a_refusal_for_ten_seconds() -> None:
    judging = ReviewCase()
    judging.server.access = {"allowed": False}
    assert judging.verdict() is FailureKind.FORBIDDEN
    judging.server.access = {"allowed": True}
    assert judging.verdict() is FailureKind.FORBIDDEN
    assert judging.num_asked == 2
    judging.clock.now_s += REFUSED_TTL_S
    assert judging.verdict() is None


def test_it_caches_no_failed_review_and_no_expired_verdict() -> None:
    judging = ReviewCase()
    judging.server.is_silent = True
    assert judging.verdict() is FailureKind.REVIEW_UNAVAILABLE
    judging.server.is_silent = False
    assert judging.verdict() is None
    judging.server.is_silent = True
    assert judging.verdict() is None, "a cached verdict needs no server"
    judging.clock.now_s += GRANTED_TTL_S
    assert judging.verdict() is FailureKind.REVIEW_UNAVAILABLE


def test_it_evicts_the_oldest_verdict() -> None:
    judging = ReviewCase()
    for at in range(MAX_CACHED_REVIEWS + 1):
        assert judging.verdict(str(at)) is None
    asked = judging.num_asked
    assert judging.verdict(str(MAX_CACHED_REVIEWS)) is None
    assert judging.num_asked == asked
    assert judging.verdict("0") is None
    assert judging.num_asked > asked


def test_it_stores_no_token() -> None:
    judging = ReviewCase()
    judging.verdict("a-very-secret-token")
    assert "a-very-secret-token" not in repr(vars(judging.reviews))
