"""Verdicts about tokens: how long they are cached, and which answers grant nothing."""

from __future__ import annotations

import json
import logging
from base64 import urlsafe_b64encode
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from itertools import islice
from threading import Event, Lock
from typing import Any

import pytest

from generator.kube.transport import KubeRequest, LineStream
from generator.rpc.auth import tokens
from generator.rpc.auth.tokens import (
    BURST,
    GRANTED_TTL_S,
    NUM_REVIEWS,
    PEER_BURST,
    PEER_PER_S,
    REFUSED_TTL_S,
    TokenReviews,
)
from generator.rpc.status_errors import CallFailure, FailureKind
from topology.model.errors import InvariantError, KubeUnavailable

SOON_S = 30.0
NOW = datetime(2026, 11, 27, tzinfo=UTC)
ALICE = {"username": "alice", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}
GOOD = {"authenticated": True, "audiences": ["toponaut"], "user": ALICE}


def jwt(name: str = "t", **claims: Any) -> str:  # noqa: ANN401 - any claim
    """Return a token of this audience whose signature nobody can check."""
    named = {"aud": ["toponaut"], "exp": NOW.timestamp() + 600, "sub": name, **claims}
    return ".".join(map(encode, ({"alg": "RS256"}, named, {})))


def encode(part: object) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


SECRET = jwt("a-very-secret-token")


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
        self.is_open = Event()
        self.is_open.set()
        self.num_at_once = 0
        self._asking = 0
        self._lock = Lock()

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        assert 0 < timeout_s <= 5
        assert isinstance(request.body, dict)
        with self._lock:
            self._asking += 1
            self.num_at_once = max(self.num_at_once, self._asking)
            self.asked.append((request.path.rpartition("/")[2], request.body["spec"]))
        self.is_open.wait(SOON_S)
        with self._lock:
            self._asking -= 1
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
        self.reviews = TokenReviews(self.server, "toponaut", clock=self.clock, now=lambda: NOW)

    def verdict(self, bearer: str = SECRET, peer: str = "10.0.0.1") -> FailureKind | None:
        judged = self.reviews.authenticate(bearer, peer=peer, timeout_s=SOON_S)
        return judged.kind if isinstance(judged, CallFailure) else None

    @property
    def num_asked(self) -> int:
        return len(self.server.asked)


def test_it_reviews_the_token_and_then_the_right() -> None:
    judging = ReviewCase()
    assert judging.reviews.authenticate(SECRET, peer="10.0.0.1", timeout_s=SOON_S) == "alice"
    attributes = {"group": "toponaut.io", "resource": "placements", "verb": "create"}
    assert judging.server.asked == [
        ("tokenreviews", {"token": SECRET, "audiences": ["toponaut"]}),
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
        pytest.param({**GOOD, "user": {}}, id="it has no user"),
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


def test_it_logs_when_reviews_begin_to_fail_and_when_they_work_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    judging = ReviewCase()
    for is_silent in (True, False, True):
        judging.server.is_silent = is_silent
        for at in range(3):
            judging.verdict(jwt(f"{is_silent} {at}"))
        judging.clock.now_s += GRANTED_TTL_S
    logged = [(row.levelname, row.getMessage(), vars(row)["num"]) for row in caplog.records]
    assert logged == [
        ("WARNING", "failing token reviews appeared", 1),
        ("INFO", "failing token reviews gone", 3),
        ("WARNING", "failing token reviews appeared", 1),
    ]


def test_it_evicts_the_oldest_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_CACHED_REVIEWS", 8)
    judging = ReviewCase()
    for at in range(9):
        assert judging.verdict(jwt(str(at))) is None
    asked = judging.num_asked
    assert judging.verdict(jwt("8")) is None
    assert judging.num_asked == asked
    assert judging.verdict(jwt("0")) is None
    assert judging.num_asked > asked


HEAD, BODY, SIGNATURE = SECRET.split(".")


@pytest.mark.parametrize(
    ("bearer", "why"),
    [
        pytest.param("secret", "no JSON web token", id="one word"),
        pytest.param(f"{HEAD}.{BODY}", "no JSON web token", id="two parts"),
        pytest.param(f"x.{BODY}.{SIGNATURE}", "no JSON web token", id="a header of nonsense"),
        pytest.param(f"{HEAD}.{encode([1])}.x", "no JSON web token", id="claims that are a list"),
        pytest.param(f"{HEAD}.%%%%.x", "no JSON web token", id="claims that are no base64"),
        pytest.param(
            f"{HEAD}.{urlsafe_b64encode(b'[' * 9000).decode()}.x",
            "no JSON web token",
            id="claims that are nested without end",
        ),
        pytest.param(
            f"{HEAD}.{urlsafe_b64encode(b'{%cexp%c:%s}' % (34, 34, b'9' * 5000)).decode()}.x",
            "no JSON web token",
            id="a number without end",
        ),
        pytest.param(jwt(aud=["other"]), "audience toponaut", id="another audience"),
        pytest.param(jwt(aud=None), "audience toponaut", id="no audience"),
        pytest.param(jwt(aud=[["toponaut"]]), "audience toponaut", id="a list within a list"),
        pytest.param(jwt(exp=NOW.timestamp() - 600), "expired", id="an end in the past"),
        pytest.param(jwt(exp="soon"), "expired", id="an end that is a text"),
        pytest.param(jwt(exp=True), "expired", id="an end that is a truth"),
    ],
)
def test_it_reviews_no_token_with(bearer: str, why: str) -> None:
    judging = ReviewCase()
    judged = judging.reviews.authenticate(bearer, peer="10.0.0.1", timeout_s=SOON_S)
    assert isinstance(judged, CallFailure)
    assert judged.kind is FailureKind.UNAUTHENTICATED
    assert why in judged.problem
    assert judging.num_asked == 0


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"aud": "toponaut"}, id="a single audience"),
        pytest.param({"aud": ["api", "toponaut"]}, id="several audiences"),
        pytest.param({"exp": NOW.timestamp() - 100}, id="an end within the difference of clocks"),
        pytest.param({"exp": 1e300}, id="an end far away"),
    ],
)
def test_it_reviews_a_token_with(claims: dict[str, Any]) -> None:
    judging = ReviewCase()
    assert judging.verdict(jwt(**claims)) is None
    assert judging.num_asked == 2


def test_a_peer_with_many_unknown_tokens_leaves_reviews_for_others() -> None:
    judging = ReviewCase()
    judging.server.token = {}
    found = Counter(judging.verdict(jwt(str(at))) for at in range(10 * PEER_BURST))
    assert found[FailureKind.UNAUTHENTICATED] == PEER_BURST
    assert found[FailureKind.OVERLOADED] == 9 * PEER_BURST
    assert judging.num_asked == PEER_BURST
    judging.server.token = GOOD
    assert judging.verdict(peer="10.0.0.2") is None
    assert judging.verdict() is None, "a cached verdict needs no review"
    judging.clock.now_s += 1 / PEER_PER_S
    assert judging.verdict(jwt("new")) is None


def test_many_peers_together_have_a_rate() -> None:
    judging = ReviewCase()
    judging.server.token = {}
    for at in range(2 * BURST):
        judging.verdict(jwt(str(at)), peer=f"10.0.{at // 256}.{at % 256}")
    assert judging.num_asked == BURST


@pytest.mark.parametrize("peer", ["10.0.0.1", "192.0.2.1"], ids=["own", "other"])
def test_unknown_tokens_keep_no_known_caller_out(peer: str) -> None:
    judging = ReviewCase()
    assert judging.verdict(peer="192.0.2.1") is None
    for _ in range(3):
        judging.clock.now_s += GRANTED_TTL_S
        judging.server.token = {}
        for at in range(2 * BURST):
            judging.verdict(jwt(f"{judging.clock.now_s}-{at}"), peer=f"10.0.0.{at % 256}")
        assert judging.verdict(jwt("new")) is FailureKind.OVERLOADED, "the rate is used up"
        judging.server.token = GOOD
        assert judging.verdict(peer=peer) is None


def test_renewals_have_a_rate_too() -> None:
    judging = ReviewCase()
    assert judging.verdict() is None
    judging.clock.now_s += GRANTED_TTL_S
    judging.server.is_silent = True
    for _ in range(2 * PEER_BURST):
        assert judging.verdict() in {FailureKind.REVIEW_UNAVAILABLE, FailureKind.OVERLOADED}
    assert judging.num_asked == 2 + PEER_BURST


def test_reviews_that_hang_hold_few_callers() -> None:
    judging, num_held = ReviewCase(), NUM_REVIEWS + tokens.MAX_WAITING
    assert judging.verdict() is None
    judging.server.is_open.clear()
    with ThreadPoolExecutor(2 * num_held) as pool:
        calls = [
            pool.submit(judging.verdict, jwt(str(at)), f"10.0.0.{at}") for at in range(2 * num_held)
        ]
        refused = list(islice(as_completed(calls, SOON_S), num_held))
        assert {call.result() for call in refused} == {FailureKind.OVERLOADED}
        assert judging.verdict() is None, "a cached verdict waits for nobody"
        judging.server.is_open.set()
        assert {call.result() for call in set(calls) - set(refused)} == {None}


def test_it_reviews_few_tokens_at_the_same_time() -> None:
    judging = ReviewCase()
    judging.server.is_open.clear()
    with ThreadPoolExecutor(16) as pool:
        same = [pool.submit(judging.verdict, SECRET, f"10.0.0.{at}") for at in range(8)]
        other = [pool.submit(judging.verdict, jwt(str(at)), f"10.0.1.{at}") for at in range(8)]
        judging.server.is_open.set()
        assert {one.result() for one in (*same, *other)} == {None}
    assert judging.server.num_at_once <= NUM_REVIEWS


def test_it_stores_no_token() -> None:
    judging = ReviewCase()
    judging.verdict(SECRET)
    assert SECRET not in repr(vars(judging.reviews))
