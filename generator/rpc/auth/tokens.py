"""Bearer tokens, checked by the API server: the user of a token, and whether the user may call.

A TokenReview returns the user, and confirms that the token was issued for this server's audience; a
token for another audience is refused. A SubjectAccessReview says whether that user may `create`
`placements.toponaut.io`, a resource that exists only in RBAC rules: the cluster's RBAC grants and
revokes access. Verdicts are cached for a minute at most, by a hash, never by the token itself. A
failed review is not cached.

Anybody can send a token. So a text that cannot be a token for this audience is refused without a
review. Reviews of tokens that are not cached are limited in number and rate, and each peer has a
share of both.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import logging
import secrets
from base64 import urlsafe_b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Final, NamedTuple, TypeGuard

from generator.kube.transport import KubeRequest, Transport, decode_object
from generator.rpc.status_errors import CallFailure, FailureKind
from runtime.clock import Monotonic, utc_now
from runtime.fair_share import FairShare
from runtime.retry import Allowance
from runtime.transition_log import TransitionLog
from topology.model.errors import KubeError, show

log = logging.getLogger(__name__)

GRANTED_TTL_S: Final = 60.0
"""The longest time until a revoked right or a deleted pod's token is noticed."""
REFUSED_TTL_S: Final = 10.0
"""The longest time until a right that was granted after a refusal is noticed."""
MAX_CACHED_REVIEWS: Final = 4096
REVIEW_TIMEOUT_S: Final = 5.0
_MIN_TIMEOUT_S: Final = 0.1
NUM_REVIEWS: Final = 4
"""Unknown tokens that are reviewed at the same time."""
NUM_RENEWALS: Final = 2
"""Tokens with an expired verdict that are reviewed at the same time, in slots of their own."""
MAX_WAITING: Final = 24
MAX_RENEWALS_WAITING: Final = 8
"""The four numbers together are fewer than the threads of the page, so that callers with a known
verdict still get a thread."""
PEER_BURST: Final = 100
"""Reviews that one peer can cause after a rest: callers may share an address."""
PEER_PER_S: Final = 10.0
BURST: Final = 400
PER_S: Final = 40.0
_MAX_PEERS: Final = 4096
SKEW_S: Final = 300.0
"""How far the clocks of two machines may differ."""
_NUM_PARTS: Final = 3
GROUP: Final = "toponaut.io"
RESOURCE: Final = "placements"
VERB: Final = "create"
_TOKEN_REVIEW_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEW_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_REJECTED: Final = CallFailure(FailureKind.UNAUTHENTICATED, "the token is not valid here")
_BUSY: Final = CallFailure(
    FailureKind.OVERLOADED, "too many tokens from this address wait for a review; try again"
)


class _ReviewRate:
    """Counts reviews; thread-safe."""

    def __init__(self, clock: Monotonic) -> None:
        """Start with all reviews allowed.

        Args:
            clock: monotonic.
        """
        self._clock = clock
        self._lock = Lock()
        self._peers: OrderedDict[str, Allowance] = OrderedDict()
        self._all = Allowance(per_second=PER_S, burst=BURST, now_s=clock())

    def take(self, peer: str) -> bool:
        """Count one review of a peer; return whether it may be made."""
        with self._lock:
            now_s = self._clock()
            own = self._peers.setdefault(
                peer, Allowance(per_second=PEER_PER_S, burst=PEER_BURST, now_s=now_s)
            )
            is_allowed = min(self._all.refill(now_s), own.refill(now_s)) >= 1
            for allowance in (self._all, own):
                allowance.tokens -= is_allowed
            self._peers.move_to_end(peer)
            while len(self._peers) > _MAX_PEERS:
                self._peers.popitem(last=False)
            return is_allowed


class _CachedReview(NamedTuple):
    result: str | CallFailure
    expires_at_s: float
    """On the monotonic clock."""


class _ReviewShare:
    """How many tokens are reviewed at the same time, and how often."""

    def __init__(self, clock: Monotonic, num_at_once: int, max_waiting: int) -> None:
        self.slots = FairShare(
            num_at_once,
            per_caller=num_at_once - 1,
            max_waiting=max_waiting,
            waiting_per_caller=max_waiting // 2,
        )
        self.rate = _ReviewRate(clock)


class TokenReviews:
    """Verdicts about tokens; thread-safe."""

    def __init__(
        self,
        transport: Transport,
        audience: str,
        *,
        clock: Monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Send no request yet.

        Args:
            transport: sends requests as a user who may create both kinds of review.
            audience: required audience of tokens.
            clock: monotonic.
            now: the wall clock.
        """
        self._transport = transport
        self._audience = audience
        self._clock = clock
        self._now = now
        self._first_reviews = _ReviewShare(clock, NUM_REVIEWS, MAX_WAITING)
        self._renewals = _ReviewShare(clock, NUM_RENEWALS, MAX_RENEWALS_WAITING)
        """Of tokens that were granted before: unknown ones do not keep known callers out."""
        self._lock = Lock()
        self._reviews: OrderedDict[bytes, _CachedReview] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._num_failed = 0
        """Reviews that failed since the last one that did not."""
        self._failure_log = TransitionLog(
            log, "failing token reviews", level=logging.WARNING, clock=clock
        )

    def authenticate(self, token: str, *, peer: str, timeout_s: float) -> str | CallFailure:
        """Return the user of the token, or why the call is refused.

        Args:
            token: the token as the caller sent it.
            peer: the address that the call comes from.
            timeout_s: time that the caller waits.
        """
        problem = _find_claim_problem(token, self._audience, self._now())
        if problem:
            return _REJECTED._replace(problem=f"{_REJECTED.problem}: {problem}")
        digest = hashlib.blake2b(token.encode(), key=self._key, digest_size=32).digest()
        cached = self._find_cached(digest)
        if self._is_valid(cached):
            return cached.result
        is_granted = cached is not None and isinstance(cached.result, str)
        share = self._renewals if is_granted else self._first_reviews
        timeout_s = min(max(timeout_s, _MIN_TIMEOUT_S), REVIEW_TIMEOUT_S)
        with share.slots.hold(peer, timeout_s=timeout_s) as has_slot:
            cached = self._find_cached(digest)  # another call may have sent the same token
            if self._is_valid(cached):
                return cached.result
            if not has_slot or not share.rate.take(peer):
                return _BUSY
            return self._review_and_cache(token, digest, timeout_s)

    def _review_and_cache(self, token: str, digest: bytes, timeout_s: float) -> str | CallFailure:
        started_at = self._clock()
        try:
            verdict = self._review(token, timeout_s)
        except KubeError as error:
            self._log_problem(str(error))
            problem = "the API server cannot review the token at present; try again"
            return CallFailure(FailureKind.REVIEW_UNAVAILABLE, problem)
        self._log_problem("")
        ttl_s = REFUSED_TTL_S if isinstance(verdict, CallFailure) else GRANTED_TTL_S
        self._cache(digest, _CachedReview(verdict, started_at + ttl_s))
        return verdict

    def _log_problem(self, problem: str) -> None:
        """Log once that reviews fail, and once that they work again and how many failed."""
        with self._lock:
            self._num_failed = self._num_failed + 1 if problem else 0
            fields = {"error": problem, "num": self._num_failed}
            self._failure_log.update({"": fields} if problem else {})

    def _find_cached(self, digest: bytes) -> _CachedReview | None:
        with self._lock:
            return self._reviews.get(digest)

    def _is_valid(self, cached: _CachedReview | None) -> TypeGuard[_CachedReview]:
        return cached is not None and self._clock() < cached.expires_at_s

    def _cache(self, digest: bytes, verdict: _CachedReview) -> None:
        with self._lock:
            self._reviews[digest] = verdict
            self._reviews.move_to_end(digest)
            while len(self._reviews) > MAX_CACHED_REVIEWS:
                self._reviews.popitem(last=False)

    def _review(self, token: str, timeout_s: float) -> str | CallFailure:
        status = self._post_review(
            _TOKEN_REVIEW_PATH, {"token": token, "audiences": [self._audience]}, timeout_s
        )
        audiences, user = status.get("audiences"), status.get("user")
        # An authenticator without support for audiences returns none: it has not checked them.
        is_for_us = isinstance(audiences, list) and self._audience in audiences
        if status.get("authenticated") is not True or not is_for_us:
            return _REJECTED
        if not isinstance(user, Mapping) or not user.get("username"):
            return _REJECTED
        spec = {
            "user": user["username"],
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "resourceAttributes": {"group": GROUP, "resource": RESOURCE, "verb": VERB},
        }
        if self._post_review(_ACCESS_REVIEW_PATH, spec, timeout_s).get("allowed") is True:
            return str(user["username"])
        username = show(str(user["username"]), 400)
        problem = (
            f"{username} may not {VERB} {RESOURCE}.{GROUP}: ask an administrator for the right"
        )
        return CallFailure(FailureKind.FORBIDDEN, problem)

    def _post_review(
        self, path: str, spec: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any]:
        request = KubeRequest("POST", path, body={"spec": spec})
        review = decode_object(str(request), self._transport.ask(request, timeout_s=timeout_s))
        status = review.get("status")
        return status if isinstance(status, Mapping) else {}


def _find_claim_problem(token: str, audience: str, now: datetime) -> str:
    """Return why a token cannot be valid for an audience; empty if it may be.

    Nobody has checked its signature yet: this only saves a review that the API server would refuse.

    Source: RFC 7519, sections 4.1.3 (`aud`: a text or a list), 4.1.4 (`exp`: seconds) and 7.2.
    """
    parts = token.split(".")
    claims = _decode_object(parts[1]) if len(parts) == _NUM_PARTS else None
    if claims is None or _decode_object(parts[0]) is None:
        return "it is no JSON web token"
    named = claims.get("aud")
    audiences = named if isinstance(named, list) else [named]
    if audience not in audiences:
        return f"it is not for the audience {audience}"
    expires_at_s = claims.get("exp", now.timestamp())
    is_number = isinstance(expires_at_s, int | float) and not isinstance(expires_at_s, bool)
    if not is_number or expires_at_s < now.timestamp() - SKEW_S:
        return "it has expired"
    return ""


def _decode_object(part: str) -> dict[str, Any] | None:
    """Return a JSON object from base64; None if it is not one."""
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
