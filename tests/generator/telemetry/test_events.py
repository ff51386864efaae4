"""The Event writer: its queue is bounded, never blocks a round, and counts every result."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event as Signal

from generator.kube.transport import KubeRequest, LineStream
from generator.reconcile.round_results import EventResult, RoundOutcome
from generator.telemetry.events import (
    BURST,
    NAMESPACE,
    QUEUE_SIZE,
    REPEAT_PERIOD_S,
    EventSource,
    EventWriter,
)
from tests.generator.rpc.clusters import tree_of
from tests.generator.telemetry.outcomes import finding
from topology.model.errors import InvariantError, KubeForbidden, KubeNotFound
from topology.model.facts import FindingKind

SOON_S = 30.0
NOW = datetime(2026, 11, 5, 10, tzinfo=UTC)
NODES = tuple(f"n{at}" for at in range(20))
QUIET = RoundOutcome(0.1, tree=tree_of(NODES))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Server:
    """An API server that holds no object, takes Events, and waits or refuses on request."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.is_open = Signal()
        self.is_open.set()
        self.is_refusing = False
        self.uid = ""

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        assert timeout_s > 0
        assert self.is_open.wait(SOON_S)
        if request.method == "GET":
            if not self.uid:
                raise KubeNotFound("gone", status=404)
            return json.dumps({"metadata": {"uid": self.uid}}).encode()
        if self.is_refusing:
            raise KubeForbidden("not for you", status=403)
        assert isinstance(request.body, dict)
        assert request.path == f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
        self.bodies.append(request.body)
        return b"{}"

    def open_stream(self, request: KubeRequest, *, idle_timeout_s: float) -> LineStream:
        raise InvariantError(f"unexpected watch: {request} {idle_timeout_s}")


class EventScene:
    """An event writer with a fake API server, and the counted results."""

    def __init__(self, *, is_leader: bool = True) -> None:
        self.server = Server()
        self.clock = Clock()
        self.results: Counter[EventResult] = Counter()
        self.is_leader = is_leader
        reporter = EventSource("replica-1", NOW, lambda: NOW, self.clock)
        self.events = EventWriter(
            self.server, reporter, is_leader=lambda: self.is_leader, on_event=self._count
        )

    def _count(self, result: EventResult) -> None:
        self.results[result] += 1

    def raise_and_clear(self, kind: FindingKind = FindingKind.SWEEP_REFUSED, *devices: str) -> None:
        """Let findings appear and go."""
        found = tuple(finding(kind, device) for device in devices or ("fe80",))
        self.events.on_round(replace(QUIET, findings=found))
        self.events.on_round(QUIET)

    def stop(self) -> list[object]:
        """Return the reasons of all Events that were written."""
        self.events.stop(deadline_s=SOON_S)
        return [body["reason"] for body in self.server.bodies]


def test_it_writes_an_event_for_each_change() -> None:
    scene = EventScene()
    scene.server.uid = "1234"
    scene.events.on_round(QUIET)
    scene.raise_and_clear()
    assert scene.stop() == ["SweepRefused", "SweepRefused"]
    appeared, gone = scene.server.bodies
    assert appeared == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default", "generateName": "toponaut-generator-"},
        "eventTime": "2026-11-05T10:00:00.000000Z",
        "reportingController": "toponaut.io/generator",
        "reportingInstance": "replica-1",
        "action": "Appeared",
        "reason": "SweepRefused",
        "regarding": {
            "apiVersion": "toponaut.io/v1alpha1",
            "kind": "Fabric",
            "name": "default",
            "uid": "1234",
        },
        "note": "sweep-refused appeared at fe80: fe80 is wrong.",
        "type": "Warning",
    }
    assert gone["type"] == "Normal"
    assert scene.results == {EventResult.WRITTEN: 2}


def test_it_writes_only_as_leader_and_starts_once_elected() -> None:
    scene = EventScene(is_leader=False)
    scene.events.on_round(QUIET)
    scene.raise_and_clear()
    scene.is_leader = True
    scene.raise_and_clear(FindingKind.UNDECIDABLE)
    assert scene.stop() == ["Undecidable", "Undecidable"]


def test_it_continues_after_a_refusal() -> None:
    scene = EventScene()
    scene.events.on_round(QUIET)
    scene.server.is_refusing = True
    scene.raise_and_clear()
    scene.stop()
    assert scene.results == {EventResult.FAILED: 2}


def test_it_drops_events_when_the_queue_is_full_and_never_waits() -> None:
    scene = EventScene()
    scene.server.is_open.clear()
    scene.events.on_round(QUIET)
    rounds = 10
    for _ in range(rounds):
        scene.raise_and_clear(
            FindingKind.DUPLICATE_ID, *NODES
        )  # one Event a node, and one that they went
    scene.server.is_open.set()
    scene.stop()
    written = scene.results[EventResult.WRITTEN]
    assert written <= QUEUE_SIZE
    assert written + scene.results[EventResult.DROPPED] == rounds * (len(NODES) + 1)


def test_it_limits_repeated_events_and_allows_more_after_a_pause() -> None:
    scene = EventScene()
    scene.events.on_round(QUIET)
    for _ in range(2 * BURST):
        scene.raise_and_clear()
    scene.clock.now_s += REPEAT_PERIOD_S
    scene.raise_and_clear()
    assert len(scene.stop()) == BURST + 1


def test_it_writes_an_event_about_a_deleted_object_without_a_uid() -> None:
    scene = EventScene()
    scene.events.on_round(QUIET)
    scene.raise_and_clear()
    scene.stop()
    assert "uid" not in str(scene.server.bodies[0]["regarding"])
