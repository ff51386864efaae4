"""Bearer tokens, judged by the API server: whose they are, and whether they may ask.

A TokenReview says whose a token is, and that it was made for us: a token for somebody else's
audience proves nothing here. A SubjectAccessReview says whether that user may `create`
`placements.toponaut.io`, a resource that exists in rules alone, so the cluster's own RBAC grants
and takes the right. Verdicts are kept for a minute at most, by a hash, never the token; a verdict
that could not be had is kept for no time.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

from generator.kube.transport import KubeRequest, Transport, decode_object
from generator.rpc.status_errors import CallFailure, FailureKind
from runtime.clock import Monotonic
from topology.model.errors import KubeError, show

log = logging.getLogger(__name__)

GRANTED_TTL_S: Final = 60.0
"""A right that was taken, or a token whose pod is gone, is known after so long at the latest."""
REFUSED_TTL_S: Final = 10.0
"""A right that was granted after a refusal is known after so long."""
MAX_CACHED_REVIEWS: Final = 4096
REVIEW_TIMEOUT_S: Final = 5.0
_MIN_TIMEOUT_S: Final = 0.1
GROUP: Final = "toponaut.io"
RESOURCE: Final = "placements"
VERB: Final = "create"
_TOKEN_REVIEW_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEW_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_REJECTED: Final = CallFailure(FailureKind.UNAUTHENTICATED, "the token is not valid here")


class _CachedReview(NamedTuple):
    result: str | CallFailure
    expires_at_s: float
    """On our clock."""


class TokenReviews:
    """Verdicts about tokens; any thread may ask."""

    def __init__(self, transport: Transport, audience: str, *, clock: Monotonic) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server; as somebody who may create both reviews.
            audience: that tokens must be made for.
            clock: monotonic.
        """
        self._transport = transport
        self._audience = audience
        self._clock = clock
        self._lock = Lock()
        self._reviews: OrderedDict[bytes, _CachedReview] = OrderedDict()
        self._key = secrets.token_bytes(32)

    def authenticate(self, token: str, *, timeout_s: float) -> str | CallFailure:
        """Return the user who bears the token, or why they may not call.

        Args:
            token: as it was sent.
            timeout_s: that the caller waits.
        """
        digest = hashlib.blake2b(token.encode(), key=self._key, digest_size=32).digest()
        known = self._find_cached(digest)
        if known is not None:
            return known.result
        asked_at = self._clock()
        try:
            judged = self._review(token, min(max(timeout_s, _MIN_TIMEOUT_S), REVIEW_TIMEOUT_S))
        except KubeError as error:
            log.warning("token not reviewed", extra={"error": str(error)})
            problem = "the API server cannot be asked about the token now; try again"
            return CallFailure(FailureKind.REVIEW_UNAVAILABLE, problem)
        kept_s = REFUSED_TTL_S if isinstance(judged, CallFailure) else GRANTED_TTL_S
        self._cache(digest, _CachedReview(judged, asked_at + kept_s))
        return judged

    def _find_cached(self, digest: bytes) -> _CachedReview | None:
        with self._lock:
            found = self._reviews.get(digest)
            return found if found is not None and self._clock() < found.expires_at_s else None

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
        # An authenticator that knows of no audiences answers without: it has not looked at them.
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
        who = show(str(user["username"]), 400)
        problem = f"{who} may not {VERB} {RESOURCE}.{GROUP}: an administrator can grant it"
        return CallFailure(FailureKind.FORBIDDEN, problem)

    def _post_review(
        self, path: str, spec: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any]:
        request = KubeRequest("POST", path, body={"spec": spec})
        found = decode_object(str(request), self._transport.ask(request, timeout_s=timeout_s))
        status = found.get("status")
        return status if isinstance(status, Mapping) else {}
