"""Writes objects by server-side apply: whole intents, under our own name, and only changes.

An object that says what is wanted already costs no request. What the server cannot take now is
tried again within limits; applying twice does no harm. A field that belongs to somebody else is
a conflict, told and not fought over, unless the object is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from generator.kube.ownership import is_applied
from generator.kube.resources import Resource
from generator.kube.transport import APPLY, MERGE, KubeRequest, Transport, decode_object
from runtime.retry import Backoff, WaitContext, TokenBucket
from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeFenced,
    KubeNotFound,
    KubeUnavailable,
)

FIELD_MANAGER: Final = "toponaut-generator"
"""Never changes: another name would leave the fields of this one behind."""
_IDENTITY: Final = ("uid", "resourceVersion")
_UNPROCESSABLE: Final = 422
"""Also what an apply with the uid of a former object of that name is told."""


AnswerT = TypeVar("Answer")

Fence = Callable[[], float]
"""For how many seconds from now a write may still arrive; 0 or less: it may not be sent."""


def never_fenced() -> float:
    """Return that there is no end: nobody else writes in our place."""
    return math.inf


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to insist."""

    max_attempts: int = 5
    request_timeout_s: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)


class Applier:
    """Creates, changes and deletes objects; may be used by several threads."""

    def __init__(
        self,
        transport: Transport,
        *,
        bucket: TokenBucket,
        pace: WaitContext,
        field_manager: str = FIELD_MANAGER,
        retry_policy: RetryPolicy = RetryPolicy(),
        fence: Fence = never_fenced,
    ) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            bucket: of writes.
            pace: how to wait, and until when.
            manager: the name under which fields are owned.
            patience: how long to insist.
            fence: asked before each attempt, which lasts no longer than it allows.
        """
        self._transport = transport
        self._bucket = bucket
        self._pace = pace
        self._manager = field_manager
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
    ) -> Mapping[str, Any]:
        """Make the object say what is desired, and return it; the observed one if it does.

        Args:
            resource: its kind.
            desired: all fields that we want to own, and nothing else.
            observed: the object as it was last seen, None where it was not.
            subresource: such as `status`.
            is_ours: take fields that others own, because the object is ours. It is meant as it
                was observed: where it was replaced or changed meanwhile, that is a conflict.

        Raises:
            KubeConflict: a field belongs to another manager; the message names both. Or the
                object is another by now.
            KubeError: it is refused, or there is no answer in time.
        """
        known = {} if observed is None else observed
        if is_applied(desired, known, field_manager=self._manager, subresource=subresource):
            return known
        metadata = known.get("metadata", {})
        uid = metadata.get("uid")
        keys = _IDENTITY if is_ours else _IDENTITY[:1]
        seen = {key: metadata[key] for key in keys if key in metadata}
        request = self._patch(
            resource, desired, observed=seen, subresource=subresource, is_forced=is_ours
        )
        try:
            return decode_object(str(request), self._send_with_retry(request))
        except KubeError as error:
            if uid and error.status == _UNPROCESSABLE and "metadata.uid" in str(error):
                raise KubeConflict(str(error), status=error.status, reason=error.reason) from error
            raise

    def create(self, resource: Resource, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make an object of the cluster, and return it.

        Raises:
            KubeConflict: there is one of that name, be it from an attempt that had no answer.
            KubeError: it is refused, or there is no answer in time.
        """
        query = (("fieldManager", self._manager),)
        request = KubeRequest("POST", resource.path(), query, document)
        return decode_object(str(request), self._send_with_retry(request))

    def _patch(
        self,
        resource: Resource,
        desired: Mapping[str, Any],
        *,
        observed: Mapping[str, str],
        subresource: str,
        is_forced: bool,
    ) -> KubeRequest:
        metadata = {**desired["metadata"], **observed}
        path = resource.path(metadata["name"], namespace=metadata.get("namespace", ""))
        return KubeRequest(
            "PATCH",
            f"{path}/{subresource}" if subresource else path,
            (("fieldManager", self._manager), ("force", "true" if is_forced else "false")),
            {**desired, "metadata": metadata},
            APPLY,
        )

    def delete(self, resource: Resource, observed: Mapping[str, Any]) -> bool:
        """Delete this very object as it was observed; return whether it was still there.

        Raises:
            KubeConflict: it was replaced or changed since.
            KubeError: it is refused, or there is no answer in time.
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
            KubeConflict: the change names a version, and the object has another by now.
            KubeError: it is refused, or there is no answer in time.
        """
        query = (("fieldManager", self._manager),)
        request = KubeRequest("PATCH", resource.path(name), query, change, MERGE)
        return decode_object(str(request), self._send_with_retry(request))

    def _send_with_retry(self, request: KubeRequest) -> bytes:
        """Ask until there is an answer, or patience ends."""
        return retry_request(
            lambda: self._write(request), pace=self._pace, policy=self._retry_policy
        )

    def _write(self, request: KubeRequest) -> bytes:
        if not self._bucket.take():
            raise KubeError(f"{request}: broken off")
        left_s = self._fence()
        if left_s <= 0:
            raise KubeFenced(f"{request}: not sent, another replica may lead by now")
        return self._transport.ask(
            request, timeout_s=min(self._retry_policy.request_timeout_s, left_s)
        )


def retry_request(ask: Callable[[], AnswerT], *, pace: WaitContext, policy: RetryPolicy) -> AnswerT:
    """Ask for what may be asked for twice, until there is an answer or patience ends.

    Raises:
        KubeError: the last one, or any that waiting does not mend.
    """
    failures = 0
    while True:
        try:
            return ask()
        except KubeUnavailable as error:
            failures += 1
            delay_s = policy.backoff.delay_s(failures, pace.uniform, asked_s=error.retry_after_s)
            if failures >= policy.max_attempts or pace.stop.wait(delay_s):
                raise
