"""PodCliqueSets of Grove: what is read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.manifests.scenes import pod_spec, spec_of, translated
from topology.model.errors import PlacementRequestError


def clique(name: str, replicas: int = 1, **spec: object) -> dict[str, Any]:
    return {"name": name, "spec": {"replicas": replicas, "podSpec": pod_spec(), **spec}}


def clique_set(*cliques: dict[str, Any], **template: object) -> dict[str, Any]:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "s"},
        "spec": {"template": {"cliques": list(cliques), **template}},
    }


def scaled(*names: str, **fields: object) -> list[dict[str, Any]]:
    return [{"name": "g", "cliqueNames": list(names), **fields}]


def test_a_clique_needs_all_pods_unless_it_says_fewer() -> None:
    rows = spec_of(clique_set(clique("a", 3), clique("b", 3, minAvailable=2)))["groups"]
    assert [(row["name"], row["count"], row["min"]) for row in rows] == [("a", 3, 3), ("b", 3, 2)]


def test_one_replica_of_a_scaling_group_is_in_the_gang_by_default() -> None:
    group = scaled("a", replicas=4, topologyConstraint={"pack": {"preferred": "rack"}})
    spec = spec_of(clique_set(clique("a", 2), podCliqueScalingGroups=group))
    (row,) = spec["groups"]
    assert (row["name"], row["preferred"]) == ("g-0", ["rack"])
    assert [child["name"] for child in row["children"]] == ["a-g-0"]


REQUIRED = {"pack": {"required": "leaf"}}


@pytest.mark.parametrize(
    ("bound", "fields", "replicas", "least", "preset"),
    [
        pytest.param({}, {"replicas": 4}, 1, None, "kai", id="only the gang without a bound"),
        pytest.param({"topologyConstraint": {"pack": {"preferred": "leaf"}}}, {"replicas": 4},
                     1, None, "kai", id="only the gang with a preference"),
        pytest.param({"topologyConstraint": REQUIRED}, {"replicas": 4}, 4, 1, "optimal",
                     id="all replicas with a bound"),
        pytest.param({"topologyConstraint": {"packDomain": "leaf"}}, {"replicas": 4}, 4, 1,
                     "optimal", id="all replicas with a bound of the older name"),
        pytest.param({"topologyConstraint": REQUIRED}, {"replicas": 4, "minAvailable": 2}, 4, 2,
                     "optimal", id="all replicas, and as many as the gang needs"),
        pytest.param({"topologyConstraint": REQUIRED}, {"replicas": 4, "minAvailable": 4}, 4, 4,
                     "kai", id="all replicas, which the gang needs"),
        pytest.param({"topologyConstraint": REQUIRED}, {}, 1, None, "kai", id="one replica"),
    ],
)  # fmt: skip
def test_a_bound_of_the_set_holds_for(
    bound: dict[str, Any], fields: dict[str, Any], replicas: int, least: int | None, preset: str
) -> None:
    group = scaled("a", "b", **fields)
    set_ = clique_set(clique("a", 2), clique("b"), podCliqueScalingGroups=group, **bound)
    spec = spec_of(set_)
    (row,) = spec["groups"]
    found = row["children"] if row["name"] == "g" else [row]
    assert [part["name"] for part in found] == [f"g-{at}" for at in range(replicas)]
    assert (row.get("min"), spec["preset"]) == (least, preset)


def test_a_bound_of_the_set_allows_no_more_replicas_than_the_engine() -> None:
    group = scaled("a", "b", replicas=129)
    fine = clique_set(clique("a"), clique("b"), podCliqueScalingGroups=group)
    assert spec_of(fine)["groups"][0]["name"] == "g-0"
    fine["spec"]["template"]["topologyConstraint"] = REQUIRED
    with pytest.raises(PlacementRequestError, match="replicas: expected at most 128, got 129"):
        spec_of(fine)


def test_an_unread_field_of_a_pod_is_listed() -> None:
    odd = clique("a", podSpec=pod_spec(schedulerHint="x"))
    (row,) = translated(clique_set(odd)).ignored
    assert row.path.endswith("spec.template.cliques[0].spec.podSpec.schedulerHint")


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        pytest.param([clique_set()], "expected at least one clique", id="no clique"),
        pytest.param([clique_set(clique("a"), clique("a"))], "expected a unique name", id="twice"),
        pytest.param(
            [clique_set(clique("a"), podCliqueScalingGroups=scaled("b"))],
            "cliqueNames[0]: expected a clique of no other group",
            id="unknown clique",
        ),
        pytest.param(
            [clique_set(clique("a"), podCliqueScalingGroups=scaled())],
            "cliqueNames: expected at least one clique",
            id="empty group",
        ),
        pytest.param(
            [
                clique_set(
                    clique("a"),
                    podCliqueScalingGroups=scaled("a", replicas=999, minAvailable=999),
                )
            ],
            "minAvailable: expected at most 256",
            id="too many replicas",
        ),
        pytest.param([clique_set(clique("a", 0))], "spec.replicas", id="no pods"),
        pytest.param(
            [clique_set(clique("a")), clique_set(clique("a"))], "has 2 sets", id="two sets"
        ),
    ],
)
def test_it_refuses(documents: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        translated(*documents)
    assert problem in str(caught.value)
