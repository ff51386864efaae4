"""Leases of an API server in memory, with a network whose failures a test chooses."""

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NoReturn

from generator.kube.transport import KubeRequest
from topology.model.errors import KubeConflict, KubeNotFound, KubeUnavailable


class Fate(StrEnum):
    """The fate of a request."""

    OK = "ok"
    LOST = "lost on its way"
    UNHEARD = "done, but its answer is lost"
    LATE = "done when nobody waits for it any more"
    SLOW_THERE = "slow on its way"
    SLOW_BACK = "done at once, with a slow answer"


class FakeLeases:
    """One lease. Writes need its current version, as on the real server."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.late: list[Callable[[], object]] = []
        self._version = 0

    def do_late_writes(self) -> None:
        """Deliver the delayed requests."""
        late, self.late = self.late, []
        for write in late:
            try:
                write()
            except (KubeConflict, KubeNotFound):
                continue

    def answer(self, request: KubeRequest) -> dict[str, Any]:
        """Execute a request at once."""
        if request.method == "GET":
            if self.stored is None:
                raise KubeNotFound("no lease", status=404)
            return self.stored
        assert isinstance(request.body, dict)
        body = request.body
        current = None if self.stored is None else self.stored["metadata"]["resourceVersion"]
        if request.method == "PUT" and current is None:
            raise KubeNotFound("no lease", status=404)
        if body["metadata"].get("resourceVersion") != current:
            raise KubeConflict("another version", status=409)
        self._version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self._version)}
        self.stored = body | {"metadata": metadata}
        return self.stored


class FakeLink:
    """One client's connection; a `Transport`."""

    def __init__(self, leases: FakeLeases, spend: Callable[[float], None]) -> None:
        """Keep the function that lets the time of a slow request pass."""
        self.fates: list[Fate] = []
        """The fates of the next requests; later requests succeed."""
        self.share = 0.5
        """The share of its timeout that a slow request takes."""
        self._leases = leases
        self._spend = spend

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        """Apply the next fate to a request."""
        fate = self.fates.pop(0) if self.fates else Fate.OK
        match fate:
            case Fate.LOST:
                self._spend(timeout_s)
                raise KubeUnavailable("lost")
            case Fate.LATE:
                self._leases.late.append(lambda: self._leases.answer(request))
                self._spend(timeout_s)
                raise KubeUnavailable("lost")
            case Fate.UNHEARD:
                self._leases.answer(request)
                self._spend(timeout_s)
                raise KubeUnavailable("lost")
            case Fate.SLOW_THERE:
                self._spend(timeout_s * self.share)
                found = self._leases.answer(request)
            case Fate.SLOW_BACK:
                found = dict(self._leases.answer(request))
                self._spend(timeout_s * self.share)
            case _:
                found = self._leases.answer(request)
        return json.dumps(found).encode()

    def open_stream(self, request: KubeRequest, *, idle_timeout_s: float) -> NoReturn:
        """Leases are not watched."""
        raise AssertionError(f"{request}: not asked for, {idle_timeout_s}")
