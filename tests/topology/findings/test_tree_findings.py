"""Findings about devices without a certain place: their evidence, and what many of them cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.topology.cables import End, hosts, infer_cables, mesh, of_kind, star
from topology.model.facts import FindingKind
from topology.model.lazy_rows import LazyRows
from topology.planes.cables import Edge, EdgeRows

LEAVES = ["leaf-a", "leaf-b"]


def tied(num_ties: int) -> list[tuple[End, End]]:
    """Return two leaves with many hosts each, and hosts with a cable to both."""
    names = [f"h{1000 + number}" for number in range(num_ties)]
    return [
        *star("leaf-a", [f"h{2000 + number}" for number in range(2 * num_ties)]),
        *star("leaf-b", [f"h{4000 + number}" for number in range(2 * num_ties)]),
        *star("leaf-a", names),
        *star("leaf-b", names, "eth1"),
        *mesh(LEAVES, ["spine-1", "spine-2"], parallel=2),
    ]


def test_a_tied_host_is_shown_with_both_ends_of_its_cables() -> None:
    found = of_kind(infer_cables(tied(2)).findings, FindingKind.UNDECIDABLE)
    (finding,) = [one for one in found if one.device == "h1001"]
    assert [tuple(end) for end in finding.ports] == [
        ("h1001", "eth0"),
        ("h1001", "eth1"),
        ("leaf-a", "to-h1001-eth0"),
        ("leaf-b", "to-h1001-eth1"),
    ]


def test_a_tied_group_is_shown_with_its_cables_to_the_groups_above() -> None:
    spines = [f"spine-{number}" for number in range(1, 5)]
    cables = [
        *star("leaf-a", hosts(1, 4)),
        *star("leaf-b", hosts(5, 8)),
        *star("leaf-c", hosts(9, 12)),
        *star("leaf-d", hosts(13, 16)),
        *star("leaf-e", hosts(17, 20)),
        *mesh(["leaf-a", "leaf-b"], spines[:2], parallel=2),
        *mesh(["leaf-c", "leaf-d"], spines[2:], parallel=2),
        *mesh(["leaf-e"], spines),
        *mesh(spines, ["core-1"]),
    ]
    found = of_kind(infer_cables(cables).findings, FindingKind.UNDECIDABLE)
    (finding,) = [one for one in found if one.device == "leaf-e"]
    ports = {f"up-{spine}-0" for spine in spines} | {"down-leaf-e-0"}
    assert {end.port for end in finding.ports} == ports
    assert {end.device for end in finding.ports} == {"leaf-e", *spines}


def test_the_cables_are_not_read_again_for_each_tied_host(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def count_rows(rows: EdgeRows) -> Iterator[Edge]:
        read.append(len(rows))
        return LazyRows.__iter__(rows)

    monkeypatch.setattr(EdgeRows, "__iter__", count_rows)
    cables = tied(100)
    inference = infer_cables(cables)
    assert len(inference.tree.unplaced) == 100
    assert sum(read) <= 5 * len(cables)
