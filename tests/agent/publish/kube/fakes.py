"""The objects of an API server in memory, as an agent's publishing uses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.publish.kube.credentials import TokenNode
from agent.publish.kube.https_client import ApiClient, ApiRequest
from topology.model.errors import KubeConflict, KubeError, KubeNotFound


@dataclass
class SteadyClock:
    """A clock that stands still until a test moves it."""

    seconds: float = 0.0

    def now(self) -> datetime:
        """Return the time of day."""
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Return seconds since the start."""
        return self.seconds


@dataclass
class FakeApi(ApiClient):
    """An API server that keeps what is applied; it fails as it is told.

    What the real server makes of applies is tried on the real server.
    """

    clock: SteadyClock
    """Moves by a second with each request."""
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name."""
    node: TokenNode | None = None
    problems: list[KubeError | None] = field(default_factory=list)
    """The failures of the next requests; None grants a request."""
    blocking_error: KubeError | None = None
    is_taken: bool = False
    """Whether another client owns our fields; then only a forced apply succeeds."""
    asked: list[str] = field(default_factory=list)
    """The method, and the rest of the path after the collection's path; READ is a patch that
    changes nothing."""

    def call(self, request: ApiRequest) -> dict[str, Any]:
        """Return or change one object."""
        path, _, query = request.path.rpartition("/neighborreports/")[2].partition("?")
        is_read = query == "dryRun=All" and request.body == {}
        self.asked.append(f"{'READ' if is_read else request.method} {path}")
        self.clock.seconds += 1
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        name, _, subresource = path.partition("/")
        if request.method == "PATCH" and not is_read:
            self._apply(name, subresource, request.body, is_forced="force=true" in query)
        if name not in self.objects:
            raise KubeNotFound(f"no {name}", status=404)
        return self.objects[name]

    def own_node(self) -> TokenNode | None:
        """Return the Node of the token."""
        return self.node

    @property
    def writes(self) -> list[str]:
        """Return the writes, as object or object/status."""
        return [one.removeprefix("PATCH ") for one in self.asked if one.startswith("PATCH ")]

    def _apply(self, name: str, subresource: str, body: Any, *, is_forced: bool) -> None:  # noqa: ANN401 - JSON
        if self.is_taken and not is_forced:
            raise KubeConflict("conflict with mallory", status=409)
        before = self.objects.get(name)
        if subresource:
            if before is None:
                raise KubeNotFound(f"no {name}", status=404)
            self.objects[name] = before | {"status": body["status"]}
            return
        self.objects[name] = (before or {}) | body
