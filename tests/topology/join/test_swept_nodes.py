"""The columns of a sweep give the fabric of its claims, each read from its device."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.damage import damaged
from tests.topology.sources.plain import case_id, cases
from topology.join.fabric_join import build_fabric
from topology.model.claims import SweptClaims, expand_claims
from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import FabricColumns, name_codes
from topology.model.ids import IdKind
from topology.model.lazy_rows import LazyRows, rows_at
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)

SPEC = SyntheticSpec(FabricKind.RAIL, 24, rails=4, radix=8)
SWEEP = render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(SPEC))))


def swept(raw: bytes) -> SweptClaims:
    return SweptClaims(parse_ibnetdiscover(raw, fast=NumpyReader()).devices)


def one_by_one(claims: SweptClaims) -> Fabric:
    return build_fabric(expand_claims([claims]))


def same(raw: bytes) -> Fabric:
    """Return the fabric of a dump, after comparing it with the one of its claims."""
    claims = swept(raw)
    fabric, expected = build_fabric([claims]), one_by_one(claims)
    assert fabric == expected
    compare(columns_of(fabric), columns_of(expected))
    assert np.asarray(columns_of(fabric).has_shared_image).tolist() == boxed(expected)
    return fabric


def test_it_returns_the_same_rows_in_any_order_of_access() -> None:
    fabric, backwards = build_fabric([swept(SWEEP.encode())]), build_fabric([swept(SWEEP.encode())])
    indices = range(len(fabric.ports) - 1, -1, -1)
    assert list(rows_at(backwards.ports, indices)) == [fabric.ports[index] for index in indices]


def boxed(fabric: Fabric) -> list[bool]:
    """Return for each device whether another device has the same system image."""
    images = [
        {one for one in device.ids if one.kind is IdKind.SYSTEM_IMAGE_GUID}
        for device in fabric.devices
    ]
    shared = Counter(one for own in images for one in own)
    return [any(shared[one] > 1 for one in own) for own in images]


def compare(columns: FabricColumns, expected: FabricColumns) -> None:
    for column, expected_column in zip(_arrays(columns), _arrays(expected), strict=True):
        assert column.dtype == expected_column.dtype
        assert np.array_equal(column, expected_column)


def _arrays(columns: FabricColumns) -> list[npt.NDArray[np.generic]]:
    codes = name_codes(columns.port_names, np.arange(len(columns.port_devices)))
    assert len(set(codes.texts)) == len(codes.texts)
    names = [codes.texts[code] for code in codes.codes]
    rest = (
        column
        for column in columns
        if column is not columns.links and column is not columns.has_shared_image
    )
    return [np.asarray(column) for column in (*rest, names, *columns.links)]


@pytest.mark.parametrize("path", cases("ibnetdiscover"), ids=case_id)
def test_it_gives_the_same_fabric_for_every_fixture(path: Path) -> None:
    same(path.read_bytes())


@needs_samples
@pytest.mark.parametrize(
    "path", sorted(SAMPLES.glob("ibnetdiscover/*.txt")), ids=lambda path: path.stem
)
def test_it_gives_the_same_fabric_for_every_real_fabric(path: Path) -> None:
    same(path.read_bytes())


PORT_LINES = [at for at, line in enumerate(SWEEP.splitlines()) if line.startswith("[")]
NAMES = ("node-7 mlx5_0", "Node-7.example mlx5_1", "localhost mlx5_0", "node-7", "")
EDITS = st.one_of(
    st.just(lambda _line: ""),
    st.integers(1, 9).map(lambda port: lambda line: re.sub(r'"\[\d+\]', f'"[{port}]', line)),
    st.sampled_from(NAMES).map(
        lambda name: lambda line: re.sub(r'"node-[^"]*"', f'"{name}"', line)
    ),
)


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """Draw a sweep with lost lines, and with wrong far ends or names."""
    lines = SWEEP.splitlines(keepends=True)
    share = draw(st.sampled_from((20, 60, len(PORT_LINES))))
    edits = draw(st.lists(st.tuples(st.integers(0, len(lines) - 1), EDITS), max_size=share))
    for at, edit in edits:
        if lines[at].startswith(("[", "Ca")) and edit(lines[at]):
            lines[at] = edit(lines[at])
        elif at in PORT_LINES:
            lines[at] = ""
    return "".join(lines)


@limits(max_examples=examples(100))
@given(damaged(cases("ibnetdiscover")))
def test_it_gives_the_same_fabric_for_damaged_files(raw: bytes) -> None:
    same(raw)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"H-02004c0000000000"', '"H-02004c0000000010"', id="a GUID of two nodes"),
        pytest.param("[1](2004c0000000000)", "[1](2004c0000000010)", id="a GUID of two ports"),
        pytest.param('Ca\t1 "H-02004c0000000000"', 'Ca\t1 "H-02004c00000000ff"', id="a lost node"),
    ],
)
def test_it_gives_the_same_fabric_for_contradictions(old: str, new: str) -> None:
    assert old in SWEEP
    same(SWEEP.replace(old, new, 1).encode())


def squares(places: Sequence[int]) -> Iterator[int]:
    return (at * at for at in places)


def test_lazy_rows_equal_the_tuple() -> None:
    rows = LazyRows(40, squares)
    wanted = tuple(at * at for at in range(40))
    assert (rows[3], rows[-1], rows[2:5], len(rows)) == (9, 39 * 39, (4, 9, 16), 40)
    assert [rows[at] for at in range(40)] == list(wanted)
    assert rows == wanted
    assert hash(rows) == hash(wanted)
    assert rows[2:5] == wanted[2:5]
    with pytest.raises(IndexError):
        LazyRows(4, squares)[4]


def test_a_fabric_of_rows_has_equal_columns() -> None:
    fabric = build_fabric([swept(SWEEP.encode())])
    compare(columns_of(fabric), columns_of(replace(fabric, columns=None)))
