"""The names in descriptions, and a description for every name."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topology.sources.infiniband.node_names import (
    describe_host,
    describe_switch,
    host_name,
    switch_name,
)

WORDS = (
    "n1 mlx5_0 HCA-1 port1 localhost a:mlx5_1 MF0;a:b/U2 Mellanox Technologies /U1 : x Voltaire "
    "H-00b0000000000010 MF0; MF0;mlx0_0"
)
TEXTS = st.one_of(
    st.text(max_size=30),
    st.lists(st.sampled_from(WORDS.split()), max_size=4).map(" ".join),
)


@pytest.mark.parametrize(
    ("text", "host", "label"),
    [
        ("n1 HCA-1", "n1", "HCA-1"),
        ("n1 mlx5_0", "n1", "mlx5_0"),
        ("n1  mlx5_0 ", "n1", "mlx5_0"),
        ("n1 ibp11s0f0", "n1", "ibp11s0f0"),
        ("n1 ibs3", "n1", "ibs3"),
        ("n1 rocep1s0f0", "n1", "rocep1s0f0"),
        ("n1 mlx5_bond_0", "n1", "mlx5_bond_0"),
        ("n1 ibp64s0 port1", "n1", "ibp64s0"),
        ("n1:mlx5_0", "n1", "mlx5_0"),
        ("n1", "n1", ""),
        ("n1.dc1.example.com mlx5_1", "n1.dc1.example.com", "mlx5_1"),
        ("Host2_1 mlx5_0", "Host2_1", "mlx5_0"),
        ("Host2_1", "Host2_1", ""),
        ("n  ud-01 mlx5_0", "n  ud-01", "mlx5_0"),
        ("host with # hash", "host with #", ""),
        ("rack:7", "rack:7", ""),
        ("HCA-1 n1", "n1", "HCA-1"),
        ("mlx5_0 n1.dc1 cell-3", "n1.dc1 cell-3", "mlx5_0"),
        ("mlx5_0 HCA-1", "mlx5_0", "HCA-1"),
        ("localhost HCA-1", "", "HCA-1"),
        ("localhost.localdomain mlx5_2", "", "mlx5_2"),
        ("ubuntu mlx5_0", "", "mlx5_0"),
        (" mlx5_0", "", "mlx5_0"),
        ("", "", ""),
        ("H-00b0000000000010", "", ""),
        ("00B0000000000010 mlx5_0", "", "mlx5_0"),
        ("MT4129 ConnectX7   Mellanox Technologies", "", ""),
        ("MT25408 ConnectX Mellanox Technologies", "", ""),
        ("MT25408 ConnectX", "", ""),
        ("MT23108 InfiniHost Mellanox Technologies", "", ""),
        ("Mellanox Technologies Aggregation Node", "", ""),
    ],
)
def test_it_returns_host_and_hca(text: str, host: str, label: str) -> None:
    assert host_name(text) == (host, label)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MF0;leaf1:MQM9700/U1", "leaf1"),
        ("MF0;leaf1:MQM9700/U2", "leaf1/U2"),
        ("MF0;core1:CS7520/L01/U1", "core1/L01"),
        ("MF0;core1:CS7520/S03/U2", "core1/S03/U2"),
        ("MF0;edge:Q3400_RA/U2/RT", "edge/U2/RT"),
        ("MF0;leaf ", "leaf"),
        ("MF0;a:b:MQM9700/U1", "a:b"),
        ("lf07.cn.a0103.qm8790", "lf07.cn.a0103.qm8790"),
        ("Voltaire 4036 # 4036-8C5C", "Voltaire 4036 # 4036-8C5C"),
        ("Voltaire 4036 - 36 QDR ports switch", ""),
        ("ISR9024 Voltaire", ""),
        ("Quantum Mellanox Technologies", ""),
        ("Infiniscale-IV Mellanox Technologies", ""),
        ("S-9c0591030000a001", ""),
        ("", ""),
    ],
)
def test_it_returns_the_name_of_a_switch(text: str, name: str) -> None:
    assert switch_name(text) == name


@given(TEXTS)
@example("mlx0_0 MF0;")
@example("MF0;mlx0_0")
def test_every_host_name_can_be_described_again(text: str) -> None:
    names = host_name(text)
    assert host_name(describe_host(*names)) == names


@given(TEXTS)
def test_every_switch_name_can_be_described_again(text: str) -> None:
    name = switch_name(text)
    assert switch_name(describe_switch(name)) == name
