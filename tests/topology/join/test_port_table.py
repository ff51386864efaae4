"""A port table returns the rows that were added."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topology.join.port_table import PortTable, PortTableBuilder
from topology.model.fabric import FabricPort
from topology.model.fabric_columns import name_codes
from topology.model.facts import GpuDistance, Medium, Port, PortState
from topology.model.lazy_rows import rows_at

PORTS = st.builds(
    Port,
    name=st.sampled_from(("1", "mlx5_0/1", "", "eth0")),
    medium=st.sampled_from(Medium),
    state=st.sampled_from(PortState),
    rate_bps=st.none() | st.integers(0, 10**15),
    rdma_device=st.none() | st.sampled_from(("mlx5_0", "")),
    gpu_distance=st.none() | st.sampled_from(GpuDistance),
    firmware_lldp=st.none() | st.booleans(),
    subnet=st.none() | st.just("fe80000000000000"),
)
ROWS = st.lists(st.tuples(st.integers(0, 1 << 20), PORTS), max_size=6)


def table_of(ports: list[tuple[int, Port]]) -> PortTable:
    builder = PortTableBuilder()
    for device, port in ports:
        builder.add(device, port)
    return builder.build()


@given(ROWS)
def test_it_returns_the_ports_that_were_added(ports: list[tuple[int, Port]]) -> None:
    rows = table_of(ports).rows()
    fields = [field for field in FabricPort._fields if field != "device"]
    assert [row.device for row in rows] == [device for device, _ in ports]
    for row, (_, port) in zip(rows, ports, strict=True):
        assert {name: getattr(row, name) for name in fields} == {
            name: getattr(port, name) for name in fields
        }


@given(ROWS)
def test_it_numbers_the_names_of_some_ports(ports: list[tuple[int, Port]]) -> None:
    indices = np.arange(len(ports))[::2]
    codes = name_codes(table_of(ports).port_names(), indices)
    names = [codes.texts[code] for code in codes.codes.tolist()]
    assert names == [port.name for _, port in ports[::2]]
    assert set(codes.texts) == set(names)


def test_it_builds_only_the_requested_rows() -> None:
    rows = table_of([(7, Port("1", medium=Medium.ETHERNET, state=PortState.UP))] * 100).rows()
    port = FabricPort(7, "1", Medium.ETHERNET, PortState.UP, None, None, None)
    assert rows_at(rows, [3, 99]) == [port, port]
