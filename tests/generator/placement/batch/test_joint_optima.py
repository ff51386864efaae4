"""Batches against the smallest spans that CP-SAT proved: fixtures/joint, from `make referee`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from generator.placement.batch.joint import place_batch
from generator.placement.request import PlacementRequest
from tests.generator.placement.batches import fits, nodes_of, request_of, snapshot_of, span_of
from tests.repository import ROOT

FILES = sorted((ROOT / "fixtures" / "joint").glob("*.json"))
MOST_GAP = 0.04
MOST_MEAN_GAP = 0.015
PER_TEST = 3
"""Instances per test."""
LEAST_INSTANCES = 230
LARGE = (12, 6)
"""Leaves and gangs of a large instance."""
LEAST_LARGE = 30


class SolvedInstance(NamedTuple):
    """One instance and its answer."""

    seed: str
    gap: float
    single_gap: float


def instances(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text())["instances"]
    return found


def requests_of(instance: dict[str, Any]) -> list[PlacementRequest]:
    return [
        request_of(
            {
                "gang": row["name"],
                **({"required": row["required"]} if row["required"] else {}),
                "groups": [
                    {"name": f"g{index}", "count": n["count"], "request": {"slots": n["slots"]}}
                    for index, n in enumerate(row["groups"])
                ],
            }
        )
        for row in instance["gangs"]
    ]


def solve_instance(instance: dict[str, Any]) -> SolvedInstance:
    """Place a batch, and check everything in the answer except its quality."""
    snapshot = snapshot_of(instance["spines"], instance["slots"])
    requests = requests_of(instance)
    found = place_batch(snapshot, requests)
    for request, row, placement in zip(requests, instance["gangs"], found.placements, strict=True):
        assert len(nodes_of(placement)) == sum(group.count for group in request.groups)
        parts = {"leaf": 3, "spine": 2}.get(row["required"], 0)
        assert len({tuple(node.split("-")[:parts]) for node in nodes_of(placement)}) == 1
    assert fits(snapshot, requests, found.placements)
    assert found.span == span_of(found.placements)
    least = instance["least_span"]
    return SolvedInstance(
        instance["seed"], found.span / least - 1, found.sequential_span / least - 1
    )


def test_it_has_instances_of_every_size_and_load() -> None:
    rows = [row for file in FILES for row in instances(file)]
    assert len(rows) >= LEAST_INSTANCES
    assert {file.stem.rpartition("-")[2] for file in FILES} == {"75", "95"}
    assert {len(row["gangs"]) for row in rows} == set(range(1, 9))
    sizes = [(sum(map(len, row["spines"])), len(row["gangs"])) for row in rows]
    assert {num_leaves for num_leaves, _ in sizes} >= {2, 16}
    assert sum(leaves >= LARGE[0] and gangs >= LARGE[1] for leaves, gangs in sizes) >= LEAST_LARGE


@pytest.mark.parametrize(
    ("file", "start"),
    [
        # The first instances of each size are quick where the cluster has room.
        pytest.param(
            file,
            start,
            id=f"{file.stem} from {start}",
            marks=[pytest.mark.long] if start or file.stem.endswith("95") else [],
        )
        for file in FILES
        for start in range(0, len(instances(file)), PER_TEST)
    ],
)
def test_it_is_near_the_proved_optimum(file: Path, start: int) -> None:
    found = [solve_instance(instance) for instance in instances(file)[start : start + PER_TEST]]
    gaps = [row.gap for row in found]
    assert min(gaps) >= 0, "no batch spans less than the proved minimum"
    assert max(gaps) <= MOST_GAP, [row for row in found if row.gap > MOST_GAP]
    assert sum(gaps) / len(gaps) <= MOST_MEAN_GAP
    assert sum(gaps) <= sum(row.single_gap for row in found), "no better than in sequence"
