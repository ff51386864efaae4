"""Strategies that draw any request of a document, and any answer of the engine."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from generator.placement.answer import (
    Alternative,
    DomainVerdict,
    Placement,
    Reason,
    ReasonKind,
    VerdictKind,
)
from generator.placement.presets import Preset
from generator.placement.request import EvictionPolicy
from tests.generator.placement.selections import pod_specs, texts, tolerations, wire_terms
from topology.model.tree import API_VERSION

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
keys = names.filter(lambda name: not name.startswith("="))
tiers = names | st.integers(1, 9)
counts = st.integers(1, 1_000_000)
INT64 = 2**63 - 1
numbers = st.integers(-INT64, INT64)

some_tiers = st.lists(tiers, max_size=2)
labels = st.dictionaries(names, names, max_size=2)
layers = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 1000),
        "tier": tiers,
        "remainder": st.sampled_from(["reject", "short"]),
        "placement": st.sampled_from(["any", "spread"]),
        "indexed": st.booleans(),
        "min": st.integers(0, 1000),
    },
)


@st.composite
def spreads(draw: st.DrawFn, num_pods: int) -> dict[str, int]:
    """Draw how many domains a group of pods uses."""
    least = draw(st.integers(1, num_pods))
    return {"min": least} | draw(
        st.fixed_dictionaries({}, optional={"max": st.integers(least, 1_000_000)})
    )


@st.composite
def pods(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Draw a group of pods."""
    count = draw(counts)
    return draw(
        st.fixed_dictionaries(
            {"name": st.just(name), "count": st.just(count)},
            optional={
                "min": st.integers(0, count),
                "request": st.dictionaries(names, st.integers(0, 2**53), max_size=3),
                "required": tiers,
                "preferred": some_tiers,
                "slices": st.lists(layers, max_size=2),
                "multiple_of": st.dictionaries(names, counts, max_size=2),
                "node_selector": st.dictionaries(
                    names, names | st.lists(names, max_size=2), max_size=2
                ),
                "node_affinity": pod_specs.map(wire_terms),
                "tolerations": st.lists(keys | texts | tolerations(), max_size=3),
                "node_preference": labels,
                "max_per_node": counts,
                "spread": st.dictionaries(names, spreads(count), max_size=2),
                "exclusive": tiers,
            },
        )
    )


@st.composite
def members(draw: st.DrawFn, given: tuple[str, ...]) -> list[dict[str, Any]]:
    """Draw groups with these names, some nested in others, some led by another group."""
    if len(given) < 3 or draw(st.booleans()):
        rows = [draw(pods(name)) for name in given]
        if len(rows) > 1 and draw(st.booleans()):
            rows[0]["leader_of"] = rows[-1]["name"]
        return rows
    at = draw(st.integers(2, len(given) - 1))
    inner = draw(members(given[1:at]))
    parent = draw(
        st.fixed_dictionaries(
            {"name": st.just(given[0]), "children": st.just(inner)},
            optional={"required": tiers, "preferred": some_tiers, "exclusive": tiers},
        )
    )
    if not any("leader_of" in row for row in inner) and draw(st.booleans()):
        parent["min"] = draw(st.integers(0, len(inner)))
    rest = draw(members(given[at:]))
    return [*rest, parent] if draw(st.booleans()) else [parent, *rest]


def leaves(rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of groups of pods."""
    return [
        name
        for row in rows
        for name in (leaves(row["children"]) if "children" in row else [row["name"]])
    ]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a request that may set any field of a document."""
    given = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    rows = draw(members(tuple(given)))
    roles = st.sampled_from(leaves(rows))
    sets = st.lists(st.lists(roles, max_size=3, unique=True), max_size=2)
    optional = {
        "preset": st.sampled_from([preset.value for preset in Preset]),
        "gang": names,
        "priority": numbers,
        "preemption": st.sampled_from([eviction.value for eviction in EvictionPolicy]),
        "min": st.integers(0, 1),
        "required": tiers,
        "preferred": some_tiers,
        "strategies": st.lists(st.tuples(tiers, tiers), max_size=3),
        "sort": st.lists(
            st.fixed_dictionaries(
                {"resource": names},
                optional={
                    "dimension": st.sampled_from(["Capacity", "Available"]),
                    "order": st.sampled_from(["Ascending", "Descending"]),
                },
            ),
            max_size=2,
        ),
        "affinity": st.fixed_dictionaries(
            {}, optional={"attract": sets, "repel": sets, "order": st.lists(roles, unique=True)}
        ),
        "traffic": st.lists(st.tuples(roles, roles, st.integers(0, 1_000_000)), max_size=2),
        "exclusive": tiers,
        "max_domains": st.dictionaries(names, st.integers(0, 1_000_000), max_size=2),
        "options": st.fixed_dictionaries(
            {},
            optional={
                "weight": st.dictionaries(names, st.integers(0, 9), max_size=2)
                | st.floats(0.001, 1e6),
                "preferred_nodes": st.lists(names, max_size=2),
                "ever_scheduled": st.booleans(),
                "sample": st.integers(0, 100),
                "spare_islands": st.booleans(),
            },
        ),
        "plane": names,
        "across_islands": st.booleans(),
        "deadline_s": st.floats(0.001, 3600),
    }
    spec = draw(st.fixed_dictionaries({"groups": st.just(rows)}, optional=optional))
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


some_name = st.none() | names
naturals = st.integers(0, INT64)
reasons = st.builds(
    Reason,
    kind=st.sampled_from(ReasonKind),
    tier=some_name,
    size=st.none() | naturals,
    count=st.none() | naturals,
    fits=st.none() | naturals,
    needed=st.none() | naturals,
    unit=st.sampled_from([None, "pods", "slices"]),
    excluded=st.none() | st.dictionaries(names, naturals, min_size=1, max_size=3),
)
values = (
    numbers | names | st.lists(numbers, max_size=4) | st.dictionaries(names, numbers, max_size=4)
)
scores = st.dictionaries(names, st.integers(0, 100), min_size=1, max_size=2) | st.dictionaries(
    names, st.floats(0, 100), min_size=1, max_size=2
)
workings: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"candidates": st.lists(names, max_size=3)}),
    st.fixed_dictionaries(
        {
            "buckets": st.lists(st.lists(names, max_size=2), max_size=2),
            "sequence": st.lists(names, max_size=3),
            "scores": st.dictionaries(names, scores, max_size=1),
        }
    ).map(lambda row: {key: row[key] for key in ("buckets", "sequence", "scores")}),
)
placements = st.builds(
    Placement,
    is_feasible=st.booleans(),
    assignment=st.dictionaries(names, st.lists(some_name, max_size=5).map(tuple), max_size=3).map(
        MappingProxyType
    ),
    tier=some_name,
    objective=st.dictionaries(names, values, max_size=5).map(MappingProxyType),
    is_proved=st.booleans(),
    victims=st.lists(names, max_size=3).map(tuple),
    reason=st.none() | reasons,
    alternatives=st.lists(
        st.builds(Alternative, change=names, tier=some_name, is_feasible=st.booleans()), max_size=3
    ).map(tuple),
    domain_verdicts=st.lists(
        st.builds(DomainVerdict, name=names, verdict=st.sampled_from(VerdictKind), needs=names),
        max_size=3,
    ).map(tuple),
    preset_details=workings.map(MappingProxyType),
)
