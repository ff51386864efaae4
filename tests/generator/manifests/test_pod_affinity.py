"""Affinity of pods to pods of their own gang is placed; affinity to any other pod is reported."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from generator.manifests.fields import Relevance
from generator.manifests.manifest_request import Translation
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from tests.generator.manifests.scenes import job, translated, volcano_job
from tests.generator.placement.documents import racks

OWN = {"matchLabels": {"app": "train"}}
NODE = "kubernetes.io/hostname"


def template_of(kind: str, *terms: dict[str, Any], app: str = "train") -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}
    return {
        "metadata": {"labels": {"app": app, "role": "worker"}},
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": 1}}}],
            "affinity": {kind: required},
        },
    }


def read(kind: str, *terms: dict[str, Any], num_pods: int = 4) -> Translation:
    levels = {"rack": "rack"}
    return translated(job(parallelism=num_pods, template=template_of(kind, *terms)), levels=levels)


def spread_of(found: Translation) -> list[int]:
    """Return the pods per node of a cluster with six nodes in two racks, most first."""
    nodes = {f"n{at}": NodeSpec(f"n{at}", {"cpu": 8000}) for at in range(6)}
    answer = place(build_snapshot(racks(3, 3), nodes), parse_request(found.document))
    return sorted(Counter(answer.assignment.get("main", ())).values(), reverse=True)


def warnings(found: Translation) -> list[str]:
    return [row.path for row in found.ignored if row.relevance is Relevance.POSSIBLE]


@pytest.mark.parametrize(
    ("kind", "term", "num_pods", "expected"),
    [
        pytest.param("podAntiAffinity", {"topologyKey": NODE}, 4, [1, 1, 1, 1], id="one per node"),
        pytest.param("podAntiAffinity", {"topologyKey": NODE}, 7, [], id="more than nodes"),
        pytest.param("podAntiAffinity", {"topologyKey": "rack"}, 2, [1, 1], id="one per rack"),
        pytest.param("podAntiAffinity", {"topologyKey": "rack"}, 3, [], id="more than racks"),
        pytest.param("podAffinity", {"topologyKey": NODE}, 8, [8], id="all on a node"),
        pytest.param("podAffinity", {"topologyKey": NODE}, 9, [], id="more than a node holds"),
        pytest.param("podAffinity", {"topologyKey": "rack"}, 24, [8, 8, 8], id="all in a rack"),
    ],
)
def test_it_places_pods_that_select_each_other(
    kind: str, term: dict[str, Any], num_pods: int, expected: list[int]
) -> None:
    found = read(kind, {"labelSelector": OWN, **term}, num_pods=num_pods)
    assert spread_of(found) == expected
    assert warnings(found) == []
    assert any("others with such labels are not known" in note.text for note in found.notes)


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": {"app": "train", "role": "worker"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["train", "x"]}]},
        {"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
        {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
    ],
    ids=str,
)
def test_it_finds_own_pods_by(selector: dict[str, Any]) -> None:
    found = read("podAntiAffinity", {"topologyKey": NODE, "labelSelector": selector})
    assert spread_of(found) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "term",
    [
        {"labelSelector": {"matchLabels": {"app": "db"}}},
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}},
        {"labelSelector": OWN, "namespaces": ["other"]},
        {"labelSelector": OWN, "namespaceSelector": {}},
        {"labelSelector": OWN, "matchLabelKeys": ["pod-template-hash"]},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_it_lists_a_term_about_other_pods(kind: str, term: dict[str, Any]) -> None:
    found = read(kind, {"topologyKey": NODE, **term})
    assert any(f".affinity.{kind}" in path for path in warnings(found))
    (group,) = found.document["spec"]["groups"]
    assert not {"slices", "required"} & group.keys()


def test_it_lists_a_term_that_selects_two_groups_of_the_gang() -> None:
    term = {"topologyKey": NODE, "labelSelector": OWN}
    tasks = [
        {"name": name, "replicas": 2, "template": template_of("podAntiAffinity", term)}
        for name in ("a", "b")
    ]
    found = translated(volcano_job(tasks))
    paths = [path for path in warnings(found) if "podAntiAffinity" in path]
    assert all(any(f"tasks[{index}]" in path for path in paths) for index in (0, 1))


def test_it_lists_preferences_and_spread_constraints() -> None:
    made = template_of("podAntiAffinity")
    made["spec"]["affinity"]["podAntiAffinity"] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": NODE, "labelSelector": OWN}}
        ]
    }
    made["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": NODE, "whenUnsatisfiable": "DoNotSchedule"}
    ]
    paths = warnings(translated(job(template=made)))
    assert any("preferredDuring" in path for path in paths)
    assert any("topologySpreadConstraints" in path for path in paths)
