"""A port table returns the rows that were added, also after a span is replaced."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topology.join.port_table import PortTable, PortTableBuilder
from topology.model.fabric import FabricPort
from topology.model.fabric_columns import name_codes
from topology.model.facts import GpuDistance, Medium, PortState
from topology.model.lazy_rows import rows_at

PORTS = st.builds(
    FabricPort,
    st.integers(0, 1 << 20),
    st.sampled_from(("1", "mlx5_0/1", "", "eth0")),
    st.sampled_from(Medium),
    st.sampled_from(PortState),
    st.none() | st.integers(0, 10**15),
    st.none() | st.sampled_from(("mlx5_0", "")),
    st.none() | st.sampled_from(GpuDistance),
    st.none() | st.booleans(),
    st.none() | st.just("fe80000000000000"),
)
ROWS = st.lists(PORTS, max_size=6)


def table_of(ports: list[FabricPort]) -> PortTable:
    builder = PortTableBuilder()
    builder.extend(ports)
    return builder.build()


@given(ROWS, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), ROWS), max_size=4))
def test_it_returns_the_rows_with_a_span_replaced(
    ports: list[FabricPort], splices: list[tuple[int, int, list[FabricPort]]]
) -> None:
    table, expected = table_of(ports), list(ports)
    for index, num_removed, new_ports in splices:
        start = min(index, len(expected))
        span = (start, min(start + num_removed, len(expected)))
        table = table.replace_ports(span, new_ports)
        expected[slice(*span)] = new_ports
    assert table.rows() == tuple(expected)
    assert table.port_names() == tuple(port.name for port in expected)


@given(ROWS)
def test_it_numbers_the_names_of_some_ports(ports: list[FabricPort]) -> None:
    indices = np.arange(len(ports))[::2]
    codes = name_codes(table_of(ports).port_names(), indices)
    names = [codes.texts[code] for code in codes.codes.tolist()]
    assert names == [port.name for port in ports[::2]]
    assert set(codes.texts) == set(names)


def test_it_builds_only_the_requested_rows() -> None:
    port = FabricPort(7, "1", Medium.ETHERNET, PortState.UP, None, None, None)
    rows = table_of([port] * 100).rows()
    assert rows_at(rows, [3, 99]) == [port, port]
