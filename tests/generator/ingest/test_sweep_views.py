"""The cables of a sweep as arrays: both forms of a sweep, and differences between two."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from generator.ingest.sweep_views import SweepView, compare_views, read_view
from tests.generator.ingest.swept_fabrics import DEVICES, HOSTS, exchange, without
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import Device
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover, render_ibnetdiscover


def by_line(devices: Sequence[Device]) -> SweepView:
    return read_view(Claim(device, Origin.SWEEP) for device in devices)


def by_column(devices: Sequence[Device]) -> SweepView:
    text = render_ibnetdiscover(devices).encode()
    return read_view(
        [SweptClaims(parse_ibnetdiscover(text, source="", fast=NumpyReader()).devices)]
    )


def test_both_forms_of_a_sweep_give_the_same_view() -> None:
    one, other = by_line(DEVICES), by_column(DEVICES)
    for name in ("guids", "switch_guids", "port_guids", "cables"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.names == other.names
    assert compare_views(one, other).is_empty


def test_an_empty_sweep_has_no_cables() -> None:
    nothing = by_line([])
    assert compare_views(nothing, nothing).is_empty
    assert nothing.find_names(np.array([1], np.uint64)) == [""]
    assert compare_views(nothing, by_line(DEVICES)).num_cables == len(by_line(DEVICES).cables)


@pytest.mark.parametrize(
    ("devices", "num_cables", "num_moved", "num_hosts", "num_switches"),
    [
        pytest.param(exchange(HOSTS[0], HOSTS[15]), 4, 2, 2, 0, id="two hosts exchanged"),
        pytest.param(without(lambda one: one.name == HOSTS[0]), 1, 0, 1, 0, id="one link down"),
        pytest.param(
            without(lambda one: one.name == "spine-01"), 8, 0, 0, 5, id="one spine is missing"
        ),
    ],
)
@pytest.mark.parametrize("read", [by_line, by_column])
def test_it_counts_what_differs(
    read: object, devices: Sequence[Device], num_cables: int, num_moved: int, num_hosts: int,
    num_switches: int,
) -> None:  # fmt: skip
    assert callable(read)
    found = compare_views(read(DEVICES), read(devices))
    assert found == compare_views(read(devices), read(DEVICES))
    assert (found.num_cables, found.num_moved) == (num_cables, num_moved)
    assert (len(found.host_guids), found.num_switches) == (num_hosts, num_switches)
    assert found.is_large == (num_cables > 1)


def test_two_large_sweeps_are_compared_quickly() -> None:
    num = 200_000
    guids = np.arange(1, num + 1, dtype=np.uint64)
    cables = np.column_stack((guids, np.ones(num, np.uint64), guids + num, guids % 64))
    names = [""] * num
    one = SweepView(guids, names, guids[:10], guids, cables.astype(np.uint64))
    other = SweepView(guids, names, guids[:10], guids, cables[:-1].astype(np.uint64))
    start_s = time.process_time()
    assert compare_views(one, other).num_cables == 1
    assert time.process_time() - start_s < 5
