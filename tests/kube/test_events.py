"""Events as the API server accepts them, and as `kubectl describe` selects them."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from urllib.parse import quote

import pytest

from generator.kube.resources import FABRICS, NODES
from generator.kube.transport import KubeTransport
from generator.objects.fabric import ConditionType
from generator.reconcile.round_results import EventResult, RoundOutcome
from generator.telemetry.events import NAMESPACE, EventSource, EventWriter
from tests.generator.rpc.clusters import tree_of
from tests.generator.telemetry.outcomes import HELD, condition, finding
from tests.kube.examples import FABRIC
from tests.lab.api_server import ApiServer
from topology.model.facts import FindingKind

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

SOON_S = 60.0
NODE = "told-of-in-events"


def described(api: ApiServer, kind: str, name: str, uid: str) -> dict[str, str]:
    """Return note by reason, selected as `kubectl describe` does."""
    fields = f"involvedObject.kind={kind},involvedObject.name={name},involvedObject.uid={uid}"
    found = api.expect(
        "GET", f"/api/v1/namespaces/{NAMESPACE}/events?fieldSelector={quote(fields)}"
    )
    ours = [one for one in found["items"] if one["reportingComponent"] == "toponaut.io/generator"]
    return {one["reason"]: one["message"] for one in ours}


def test_it_is_shown_when_the_object_is_described(api: ApiServer, transport: KubeTransport) -> None:
    head = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind}
    api.request("POST", FABRICS.path(), head | {"metadata": {"name": "default"}, **FABRIC})
    fabric = api.expect("GET", FABRICS.path("default"))["metadata"]["uid"]
    made = api.expect("POST", NODES.path(), {"metadata": {"name": NODE}})
    results: Counter[EventResult] = Counter()
    now = datetime.now(UTC)
    events = EventWriter(
        transport,
        EventSource("replica-1", now, lambda: now, monotonic),
        is_leader=lambda: True,
        on_event=lambda result: results.update([result]),
    )
    quiet = RoundOutcome(0.1, tree=tree_of((NODE,)))
    events.on_round(quiet)
    events.on_round(
        replace(
            quiet,
            held=HELD,
            conditions=(condition(ConditionType.READY, is_true=False, reason="ChangeBlocked"),),
            findings=(finding(FindingKind.DUPLICATE_ID, NODE),),
        )
    )
    events.stop(deadline_s=SOON_S)
    assert results == {EventResult.WRITTEN: 3}
    told = described(api, "Fabric", "default", fabric)
    assert set(told) >= {"ChangeBlocked", "PlanHeld"}
    assert described(api, "Node", NODE, made["metadata"]["uid"]) == {
        "Quarantined": f"{NODE} is wrong."
    }
