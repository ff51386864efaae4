"""Writes objects by server-side apply, under our own field manager, and only if they change.

An object that already has the desired fields costs no request. If the server is not available, a
write is tried again within limits; applying twice does no harm. A field of another manager is a
conflict, which is reported and not forced, unless the object is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from generator.kube.ownership import is_applied
from generator.kube.resources import Resource
from generator.kube.transport import APPLY, MERGE, KubeRequest, Transport, decode_object
from runtime.retry import Backoff, TokenBucket, WaitContext
from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeFenced,
    KubeNotFound,
    KubeUnavailable,
)

FIELD_MANAGER: Final = "toponaut-generator"
"""Must never change: under another name, the fields of this manager would stay forever."""
_IDENTITY: Final = ("uid", "resourceVersion")
_UNPROCESSABLE: Final = 422
"""Also the answer to an apply with the uid of an earlier object of the same name."""


AnswerT = TypeVar("AnswerT")

Fence = Callable[[], float]
"""Returns for how many seconds from now a write may still arrive; at 0 or less, send no write."""


def never_fenced() -> float:
    """Return infinity: no other replica writes instead of us."""
    return math.inf


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to try a request."""

    max_attempts: int = 5
    request_timeout_s: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)


class Applier:
    """Creates, changes and deletes objects; several threads may use it."""

    def __init__(
        self,
        transport: Transport,
        *,
        bucket: TokenBucket,
        pace: WaitContext,
        retry_policy: RetryPolicy = RetryPolicy(),
        fence: Fence = never_fenced,
    ) -> None:
        """Send no request yet.

        Args:
            transport: sends requests to the API server.
            bucket: limits the rate of writes.
            pace: how to wait, and the stop request.
            retry_policy: how often and how long to try a write.
            fence: called before each attempt; limits the timeout of the attempt.
        """
        self._transport = transport
        self._bucket = bucket
        self._pace = pace
        self._retry_policy = retry_policy
        self._fence = fence

    def apply(
        self,
        resource: Resource,
        desired: Mapping[str, Any],
        observed: Mapping[str, Any] | None = None,
        *,
        subresource: str = "",
        is_ours: bool = False,
        manager: str = FIELD_MANAGER,
    ) -> Mapping[str, Any]:
        """Apply the desired fields and return the object; the observed object if nothing changes.

        Args:
            resource: the kind of the object.
            desired: exactly the fields that we want to own.
            observed: the object as last seen; None if it was not seen.
            subresource: such as `status`.
            is_ours: take over fields of other managers, because the object is ours. The write is
                a conflict if the object was replaced or changed since it was observed.
            manager: the name under which the fields are owned.

        Raises:
            KubeConflict: a field belongs to another manager, and the message names both; or the
                object was replaced or changed.
            KubeError: the server refused the request, or did not answer in time.
        """
        known = {} if observed is None else observed
        if is_applied(desired, known, field_manager=manager, subresource=subresource):
            return known
        metadata = known.get("metadata", {})
        uid = metadata.get("uid")
        keys = _IDENTITY if is_ours else _IDENTITY[:1]
        seen = {key: metadata[key] for key in keys if key in metadata}
        metadata = {**desired["metadata"], **seen}
        path = resource.path(metadata["name"], namespace=metadata.get("namespace", ""))
        request = KubeRequest(
            "PATCH",
            f"{path}/{subresource}" if subresource else path,
            (("fieldManager", manager), ("force", "true" if is_ours else "false")),
            {**desired, "metadata": metadata},
            APPLY,
        )
        try:
            return decode_object(str(request), self._send_with_retry(request))
        except KubeError as error:
            if uid and error.status == _UNPROCESSABLE and "metadata.uid" in str(error):
                raise KubeConflict(str(error), status=error.status, reason=error.reason) from error
            raise

    def create(self, resource: Resource, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create a cluster-scoped object, and return it.

        Raises:
            KubeConflict: the name exists, possibly from an earlier attempt without an answer.
            KubeError: the server refused the request, or did not answer in time.
        """
        query = (("fieldManager", FIELD_MANAGER),)
        request = KubeRequest("POST", resource.path(), query, document)
        return decode_object(str(request), self._send_with_retry(request))

    def delete(self, resource: Resource, observed: Mapping[str, Any]) -> bool:
        """Delete exactly the observed version of an object; return whether it still existed.

        Raises:
            KubeConflict: the object was replaced or changed since.
            KubeError: the server refused the request, or did not answer in time.
        """
        metadata = observed["metadata"]
        seen = {key: metadata[key] for key in _IDENTITY if key in metadata}
        path = resource.path(metadata["name"], namespace=metadata.get("namespace", ""))
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": seen}
        try:
            self._send_with_retry(KubeRequest("DELETE", path, body=body))
        except KubeNotFound:
            return False
        return True

    def patch(self, resource: Resource, name: str, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merge a change into an object, and return it.

        Raises:
            KubeConflict: the change names a version, and the object now has another version.
            KubeError: the server refused the request, or did not answer in time.
        """
        query = (("fieldManager", FIELD_MANAGER),)
        request = KubeRequest("PATCH", resource.path(name), query, change, MERGE)
        return decode_object(str(request), self._send_with_retry(request))

    def _send_with_retry(self, request: KubeRequest) -> bytes:
        """Send a request until there is an answer, or the retry policy is exhausted."""
        return retry_request(
            lambda: self._write(request), pace=self._pace, policy=self._retry_policy
        )

    def _write(self, request: KubeRequest) -> bytes:
        if not self._bucket.take():
            raise KubeError(f"{request}: stopped")
        left_s = self._fence()
        if left_s <= 0:
            raise KubeFenced(f"{request}: not sent: another replica may lead now")
        return self._transport.ask(
            request, timeout_s=min(self._retry_policy.request_timeout_s, left_s)
        )


def retry_request(ask: Callable[[], AnswerT], *, pace: WaitContext, policy: RetryPolicy) -> AnswerT:
    """Call an idempotent request until there is an answer, or the retry policy is exhausted.

    A server that asks for a longer wait than the policy has is not asked again: the caller has
    other work meanwhile.

    Raises:
        KubeError: the last error, or the first error that a retry cannot solve.
    """
    failures = 0
    while True:
        try:
            return ask()
        except KubeUnavailable as error:
            failures += 1
            asked_s, backoff = error.retry_after_s, policy.backoff
            is_last = failures >= policy.max_attempts or (asked_s or 0.0) > backoff.limit_s
            if is_last or pace.stop.wait(backoff.delay_s(failures, pace.uniform, asked_s=asked_s)):
                raise
