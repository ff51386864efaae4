"""The pods that fit a node are those that its free quantities allow, whatever else is used."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from tests.generator.placement.documents import racks

NAMES = ("cpu", "gpu", "tpu")
"""No node has the last one."""
quantities = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=3)
nodes = st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 9)), min_size=4, max_size=4)
UNBOUNDED = 7


@given(rows=nodes, need=quantities, used=quantities)
def test_one_formula_counts_pods_per_node(
    rows: list[tuple[int, int]], need: dict[str, int], used: dict[str, int]
) -> None:
    specs = {
        f"n{index}": NodeSpec(f"n{index}", {"cpu": cpu, "gpu": gpu})
        for index, (cpu, gpu) in enumerate(rows)
    }
    snapshot = build_snapshot(racks(2, 2), specs)
    wanted = {name: quantity for name, quantity in need.items() if quantity}
    free = [{"cpu": cpu, "gpu": gpu} for cpu, gpu in rows]
    expected = [
        max(min((row.get(name, 0) - used.get(name, 0)) // quantity for name, quantity in pairs), 0)
        if (pairs := list(wanted.items())) and wanted.keys() <= row.keys()
        else (0 if wanted else UNBOUNDED)
        for row in free
    ]
    counted = snapshot.count_slots(need, unbounded=UNBOUNDED, used=used)
    assert counted.tolist() == expected
    one = snapshot.count_slots(need, unbounded=UNBOUNDED, nodes=slice(2, 3), used=used)
    assert one.tolist() == expected[2:3]
