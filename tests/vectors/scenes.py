"""Convert a vector's cluster to a snapshot, and its request to a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from generator.placement.cluster.nodes import Exclusion, NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.quantities import render_quantity
from topology.model.tree import API_VERSION, DomainSpec, TopologyTree, build_tree

ONE_SLOT = {"slots": 1}
Branch = dict[str, Any] | list[str]
"""Domains by name, or nodes."""


def snapshot_of(vector: Mapping[str, Any]) -> Snapshot:
    """Return the cluster of a vector."""
    nodes = {
        name: NodeSpec(
            name,
            capacity=row.get("capacity", ONE_SLOT),
            free=row.get("free"),
            labels=row.get("labels", {}),
            taints=tuple(row.get("taints", ())),
            exclusion=None if row.get("schedulable", True) else Exclusion.UNSCHEDULABLE,
        )
        for name, row in vector.get("nodes", {}).items()
    }
    return build_snapshot(
        tree_of(vector["tree"]),
        nodes,
        _gangs(vector.get("running", ())),
        _gangs(vector.get("reserved", ())),
    )


def _gangs(rows: Iterable[Mapping[str, Any]]) -> list[RunningGang]:
    return [
        RunningGang(
            gang=row["gang"],
            pods=tuple(
                RunningPods(
                    pods["node"],
                    pods.get("request", ONE_SLOT),
                    pods.get("count", 1),
                    pods.get("group"),
                )
                for pods in row["pods"]
            ),
            priority=row.get("priority", 0),
            preemptible=row.get("preemptible", True),
            min_pods=row.get("min"),
            exclusive=row.get("exclusive"),
        )
        for row in rows
    ]


def tree_of(tree: Mapping[str, Any]) -> TopologyTree:
    """Return a vector's tree; in a flat tree every node has its own domain."""
    tiers = tuple(tree["tiers"]) or ("alone",)
    return build_tree(_domains(tree["root"], (), None, len(tiers)), tiers=tiers)


def _domains(
    branch: Branch, path: tuple[str, ...], parent: str | None, tier: int
) -> Iterator[DomainSpec]:
    """Yield the domains of a branch, whose own names are of `tier`; an empty name skips a tier."""
    if isinstance(branch, list):
        assert parent is None, "nodes below a domain are that domain's"
        yield from (DomainSpec(f"/{node}", 1, None, (node,)) for node in branch)
        return
    for name, below in branch.items():
        if not name:
            assert not isinstance(below, list), "a node without a domain is not supported"
            yield from _domains(below, (*path, name), parent, tier - 1)
            continue
        full = "/".join((*path, name))
        nodes, rest = _split(below)
        yield DomainSpec(full, tier, parent, nodes)
        yield from _domains(rest, (*path, name), full, tier - 1)


def _split(below: Branch) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the nodes directly below a domain, and its child domains."""
    if isinstance(below, list):
        return tuple(below), {}
    direct: list[str] = []
    inner = below.get("")
    while isinstance(inner, dict) and set(inner) == {""}:
        inner = inner[""]
    if isinstance(inner, list):
        direct = inner
    return tuple(direct), {name: rows for name, rows in below.items() if name or not direct}


def document_of(vector: Mapping[str, Any], preset: str | None = None) -> dict[str, Any]:
    """Return the request of a vector as a document.

    The virtual root of a vector connects everything, so its request may cross islands. Quantities
    of a vector are in any unit, so they are counts as the engine has them, on nodes and for pods.
    """
    request = dict(vector["request"])
    request["groups"] = [_write_quantities(row) for row in request.get("groups", ())]
    if preset is not None:
        request |= {"preset": preset}
        request.pop("options", None)
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementRequest",
        "spec": request | {"across_islands": True},
    }


def _write_quantities(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group with its counts of units as a person would write them."""
    written = dict(row)
    if "request" in row:
        written["request"] = {
            name: render_quantity(name, num) for name, num in row["request"].items()
        }
    if "children" in row:
        written["children"] = [_write_quantities(child) for child in row["children"]]
    return written
