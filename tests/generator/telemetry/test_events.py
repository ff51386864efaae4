"""The queue before the API server: bounded, patient with nobody, told what became of each."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event as Signal

from generator.kube.transport import LineStream, KubeRequest
from generator.reconcile.result import EventResult, RoundOutcome
from generator.telemetry.events import (
    BURST,
    NAMESPACE,
    QUEUE_SIZE,
    REPEAT_PERIOD_S,
    EventWriter,
    EventSource,
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
    """An API server that holds no object, takes Events, and can be told to wait or to refuse."""

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

    def open_stream(self, request: KubeRequest, *, idle_s: float) -> LineStream:
        raise InvariantError(f"nobody follows: {request} {idle_s}")


class Telling:
    """Events, and what became of them."""

    def __init__(self, *, is_leader: bool = True) -> None:
        self.server = Server()
        self.clock = Clock()
        self.results: Counter[EventResult] = Counter()
        self.is_leader = is_leader
        reporter = EventSource("me", NOW, lambda: NOW, self.clock)
        self.events = EventWriter(
            self.server, reporter, is_leader=lambda: self.is_leader, on_event=self._count
        )

    def _count(self, result: EventResult) -> None:
        self.results[result] += 1

    def turn(self, kind: FindingKind = FindingKind.SWEEP_REFUSED, *devices: str) -> None:
        """Let findings appear and go."""
        found = tuple(finding(kind, device) for device in devices or ("fe80",))
        self.events.on_round(replace(QUIET, findings=found))
        self.events.on_round(QUIET)

    def stop(self) -> list[object]:
        """Return the reasons of all Events that were written."""
        self.events.stop(deadline_s=SOON_S)
        return [body["reason"] for body in self.server.bodies]


def test_it_writes_an_event_for_each_change() -> None:
    telling = Telling()
    telling.server.uid = "1234"
    telling.events.on_round(QUIET)
    telling.turn()
    assert telling.stop() == ["SweepRefused", "SweepRefused"]
    appeared, gone = telling.server.bodies
    assert appeared == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default", "generateName": "toponaut-generator-"},
        "eventTime": "2026-11-05T10:00:00.000000Z",
        "reportingController": "toponaut.io/generator",
        "reportingInstance": "me",
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
    assert telling.results == {EventResult.WRITTEN: 2}


def test_it_leaves_telling_to_the_leader_and_goes_on_where_it_becomes_one() -> None:
    telling = Telling(is_leader=False)
    telling.events.on_round(QUIET)
    telling.turn()
    telling.is_leader = True
    telling.turn(FindingKind.UNDECIDABLE)
    assert telling.stop() == ["Undecidable", "Undecidable"]


def test_it_goes_on_after_a_refusal() -> None:
    telling = Telling()
    telling.events.on_round(QUIET)
    telling.server.is_refusing = True
    telling.turn()
    telling.stop()
    assert telling.results == {EventResult.FAILED: 2}


def test_it_drops_what_does_not_fit_and_never_waits() -> None:
    telling = Telling()
    telling.server.is_open.clear()
    telling.events.on_round(QUIET)
    rounds = 10
    for _ in range(rounds):
        telling.turn(FindingKind.DUPLICATE_ID, *NODES)  # a notice a node, and one that it went
    telling.server.is_open.set()
    telling.stop()
    taken = telling.results[EventResult.WRITTEN]
    assert taken <= QUEUE_SIZE
    assert taken + telling.results[EventResult.DROPPED] == rounds * (len(NODES) + 1)


def test_it_tires_of_what_keeps_turning_and_listens_again_after_a_rest() -> None:
    telling = Telling()
    telling.events.on_round(QUIET)
    for _ in range(2 * BURST):
        telling.turn()
    telling.clock.now_s += REPEAT_PERIOD_S
    telling.turn()
    assert len(telling.stop()) == BURST + 1


def test_it_tells_of_an_object_that_is_gone() -> None:
    telling = Telling()
    telling.events.on_round(QUIET)
    telling.turn()
    telling.stop()
    assert "uid" not in str(telling.server.bodies[0]["regarding"])
