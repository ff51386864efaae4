"""Any request that a document can hold, and any answer that the engine can give."""

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
    Verdict,
)
from topology.tree import API_VERSION

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
tiers = names | st.integers(1, 9)
counts = st.integers(1, 1_000_000)
INT64 = 2**63 - 1
numbers = st.integers(-INT64, INT64)

layers = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 1000),
        "tier": tiers,
        "remainder": st.sampled_from(["reject", "short"]),
        "placement": st.just("any"),
        "indexed": st.booleans(),
    },
)


@st.composite
def groups(draw: st.DrawFn, name: str) -> dict[str, Any]:
    count = draw(counts)
    return draw(
        st.fixed_dictionaries(
            {"name": st.just(name), "count": st.just(count)},
            optional={
                "min": st.integers(0, count),
                "request": st.dictionaries(names, st.integers(0, 2**53), max_size=3),
                "node_selector": st.dictionaries(
                    names, names | st.lists(names, max_size=2), max_size=2
                ),
                "tolerations": st.lists(st.text(st.characters(codec="utf-8"), max_size=4)),
                "slices": st.lists(layers, max_size=1),
            },
        )
    )


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a request of everything that the engine grants."""
    made = [
        draw(groups(name)) for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))
    ]
    if len(made) == 1:
        alone = {
            "required": tiers,
            "preferred": st.lists(tiers, max_size=2),
            "multiple_of": st.dictionaries(names, counts, max_size=2),
            "slices": st.lists(
                layers | st.just({"size": 4, "tier": "leaf", "placement": "spread"}), max_size=3
            ),
        }
        made[0] |= draw(st.fixed_dictionaries({}, optional=alone))
    optional = {
        "preset": st.sampled_from(["optimal", "koordinator"]),
        "gang": names,
        "priority": numbers,
        "min": st.integers(0, made[0]["count"]),
        "required": tiers,
        "preferred": st.lists(tiers, max_size=2),
        "strategies": st.lists(st.tuples(tiers, tiers), max_size=3),
        "max_domains": st.dictionaries(names, st.integers(0, 1_000_000), max_size=2),
        "plane": names,
        "across_islands": st.booleans(),
        "deadline_s": st.floats(0.001, 3600),
    }
    spec = draw(st.fixed_dictionaries({"groups": st.just(made)}, optional=optional))
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
    domains=st.lists(
        st.builds(DomainVerdict, name=names, verdict=st.sampled_from(Verdict), needs=names),
        max_size=3,
    ).map(tuple),
)
