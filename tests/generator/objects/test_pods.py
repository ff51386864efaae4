"""Facts from pods: gangs, bound pods, and which agents are ready."""

from datetime import datetime
from typing import Any

import pytest

from generator.objects.pods import (
    BoundPod,
    Gang,
    RunningPod,
    find_gangs,
    find_unready_agents,
    parse_bound_pod,
    parse_followed_pod,
    parse_gang_pod,
)

AGENT = {"app.kubernetes.io/name": "toponaut", "app.kubernetes.io/component": "agent"}


def pod(node: str = "n1", **metadata: object) -> dict[str, Any]:
    return {"metadata": {"namespace": "train", "name": "p", **metadata}, "spec": {"nodeName": node}}


def owner(api_version: str, kind: str, *, controller: object = True) -> list[dict[str, object]]:
    return [{"apiVersion": api_version, "kind": kind, "name": "x", "controller": controller}]


@pytest.mark.parametrize(
    ("found", "gang"),
    [
        pytest.param(
            pod(annotations={"scheduling.k8s.io/group-name": "llm"}), "train/llm", id="of Volcano"
        ),
        pytest.param(
            pod(labels={"scheduling.x-k8s.io/pod-group": "llm"}), "train/llm", id="of coscheduling"
        ),
        pytest.param(
            pod(ownerReferences=owner("batch/v1", "Job")), "train/Job.x", id="of a controller"
        ),
        pytest.param(
            pod(
                ownerReferences=owner("batch/v1", "Job"),
                annotations={"scheduling.k8s.io/group-name": "llm"},
            ),
            "train/llm",
            id="of a group rather than of its controller",
        ),
    ],
)
def test_it_finds_the_gang(found: dict[str, Any], gang: str) -> None:
    assert parse_gang_pod(found) == RunningPod("n1", gang)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(), id="it is alone"),
        pytest.param(pod(ownerReferences=owner("apps/v1", "ReplicaSet")), id="it serves"),
        pytest.param(pod(ownerReferences=owner("apps/v1", "DaemonSet")), id="it is everywhere"),
        pytest.param(pod(ownerReferences=owner("v1", "Node")), id="it is static"),
        pytest.param(
            pod(ownerReferences=owner("batch/v1", "Job", controller=False)),
            id="it has no controller",
        ),
        pytest.param(
            pod(node="", annotations={"scheduling.k8s.io/group-name": "llm"}), id="it is nowhere"
        ),
        pytest.param({}, id="there is nothing in it"),
        pytest.param(
            {"metadata": {"labels": 1, "ownerReferences": 2}, "spec": {"nodeName": "n"}}, id="odd"
        ),
        pytest.param(
            pod(annotations={"scheduling.k8s.io/group-name": 7}, ownerReferences=[None]),
            id="its marks are no text",
        ),
    ],
)
def test_it_ignores_a_pod_where(found: dict[str, Any]) -> None:
    assert parse_gang_pod(found) is None


def test_it_counts_gangs_on_two_nodes_or_more() -> None:
    pods = [RunningPod("n2", "t/a"), RunningPod("n1", "t/a"), RunningPod("n1", "t/b")]
    pods += [RunningPod("n1", "t/b"), RunningPod("n9", agent_namespace="t")]
    assert find_gangs(pods) == (Gang("t/a", frozenset({"n1", "n2"})),)


def test_it_finds_agents_that_are_not_ready() -> None:
    def agent(node: str, status: str) -> RunningPod | None:
        rows = [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": status}]
        return parse_gang_pod(pod(node, labels=AGENT) | {"status": {"conditions": rows}})

    seen = [agent("n1", "True"), agent("n2", "False"), agent("n3", "False"), agent("n3", "True")]
    seen.append(parse_gang_pod(pod("n4", labels=AGENT)))
    assert find_unready_agents((one for one in seen if one), "train") == {"n2", "n4"}


def test_a_pod_of_another_namespace_is_no_agent() -> None:
    """It may have any label, and its condition is what its author wants."""
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    own = [parse_gang_pod(pod(node, labels=AGENT)) for node in ("n1", "n2")]
    foreign = [pod("n1", labels=AGENT, namespace="tenant") | ready]
    foreign.append(pod("n3", labels=AGENT, namespace="tenant"))
    seen = [one for one in (*own, *map(parse_gang_pod, foreign)) if one]
    assert find_unready_agents(seen, "train") == {"n1", "n2"}
    hidden = parse_gang_pod(pod(labels=AGENT, annotations=MARKED, namespace="tenant"))
    assert hidden is not None
    assert hidden.gang == "tenant/llm", "the labels of an agent hide no gang"


MARKED = {"scheduling.k8s.io/group-name": "llm"}
MADE, BOUND = "2026-07-01T12:00:00Z", "2026-07-01T12:00:09Z"


def bound(*conditions: object, made: object = MADE) -> BoundPod | None:
    found = pod(annotations=MARKED, creationTimestamp=made)
    found["spec"]["containers"] = [{"resources": {"requests": {"cpu": "500m"}}}]
    found["status"] = {"phase": "Pending", "conditions": list(conditions)}
    return parse_bound_pod(found)


def scheduled(status: str = "True", time: object = BOUND) -> dict[str, object]:
    return {"type": "PodScheduled", "status": status, "lastTransitionTime": time}


@pytest.mark.parametrize(
    ("conditions", "made", "since"),
    [
        pytest.param([scheduled()], MADE, BOUND, id="a condition says so"),
        pytest.param([], MADE, MADE, id="nothing but its age does"),
        pytest.param([scheduled("False")], MADE, MADE, id="it waited for long"),
        pytest.param([{"type": "Ready", "status": "True"}, "junk"], MADE, MADE, id="others do"),
        pytest.param([scheduled(time="soon")], MADE, None, id="the time is none"),
        pytest.param([scheduled(time="2026-07-01T12:00:00")], MADE, None, id="it has no zone"),
        pytest.param([], None, None, id="nothing does"),
    ],
)
def test_it_finds_the_bind_time_of_a_pod_where(
    conditions: list[object], made: object, since: str | None
) -> None:
    found = bound(*conditions, made=made)
    assert found is not None
    assert (found.gang, found.node) == ("train/llm", "n1")
    assert found.requests["cpu"] == 500
    assert found.bound_at == (None if since is None else datetime.fromisoformat(since))  # noqa: TID251 - a literal


def test_it_counts_a_pod_that_is_bound_before_it_runs() -> None:
    found = pod(annotations=MARKED)
    followed = parse_followed_pod(found)
    assert followed is not None
    assert (followed.running, followed.bound is None) == (None, False)
    assert parse_bound_pod(found | {"spec": {}}) is None
    assert parse_bound_pod(pod()) is None, "it is in no gang"
    assert parse_bound_pod(found | {"status": {"phase": "Failed"}}) is None
