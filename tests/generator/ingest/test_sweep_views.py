"""The cables of a sweep as arrays, and the differences between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from generator.ingest.sweep_views import compare_views
from tests.generator.ingest.swept_fabrics import DEVICES, HOSTS, exchange, view_devices, without
from topology.model.facts import Device, DeviceKind, Port
from topology.model.ids import Id, IdKind


def test_an_empty_sweep_has_no_cables() -> None:
    nothing = view_devices([])
    assert compare_views(nothing, nothing).is_empty
    assert nothing.find_names(np.array([1], np.uint64)) == [""]
    assert compare_views(nothing, view_devices(DEVICES)).num_cables == len(
        view_devices(DEVICES).cables
    )


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
def test_it_counts_what_differs(
    devices: Sequence[Device], num_cables: int, num_moved: int, num_hosts: int, num_switches: int
) -> None:
    found = compare_views(view_devices(DEVICES), view_devices(devices))
    assert found == compare_views(view_devices(devices), view_devices(DEVICES))
    assert (found.num_cables, found.num_moved) == (num_cables, num_moved)
    assert (len(found.host_guids), found.num_switches) == (num_hosts, num_switches)
    assert found.is_large == (num_cables > 1)


def test_a_lost_cable_is_large_where_a_switch_has_no_more_than_two() -> None:
    leaf = next(one for one in DEVICES if one.name == "leaf-g01")
    ups = [port for port in leaf.ports if port.neighbors[0].device_name.startswith("spine")]
    for num_left in (3, 2, 1):
        before = cut_ports(ups[num_left:])
        after = cut_ports(ups[num_left - 1 :])
        found = compare_views(view_devices(before), view_devices(after))
        assert (found.num_cables, found.is_large) == (1, num_left < 3)


def cut_ports(cut: Sequence[Port]) -> list[Device]:
    """Return the sweep in which leaf-g01 lacks the cables of some ports."""
    lost = {port.name for port in cut}

    def is_cut(device: Device, port: Port) -> bool:
        (far,) = port.neighbors
        names = (device.name, far.device_name)
        return (names[0] == "leaf-g01" and port.name in lost) or (
            names[1] == "leaf-g01" and far.port_name in lost
        )

    return [
        replace(device, ports=tuple(port for port in device.ports if not is_cut(device, port)))
        for device in DEVICES
    ]


def relabelled(which: str, **facts: object) -> list[Device]:
    return [replace(one, **facts) if one.name == which else one for one in DEVICES]  # type: ignore[arg-type]


IMAGE = (Id(IdKind.SYSTEM_IMAGE_GUID, "00000000000000aa"),)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        pytest.param("leaf-g01", {"name": "storage-leaf-g01"}, id="a switch has another name"),
        pytest.param(HOSTS[0], {"name": HOSTS[12]}, id="an HCA has the name of another host"),
        pytest.param(HOSTS[0], {"kind": DeviceKind.ROUTER}, id="an HCA is a router"),
        pytest.param("leaf-g01", {"ids": IMAGE}, id="a switch is in another box"),
    ],
)
def test_devices_that_are_described_otherwise_are_a_large_difference(
    name: str, facts: dict[str, Any]
) -> None:
    if "ids" in facts:
        (device,) = (one for one in DEVICES if one.name == name)
        facts = {"ids": (*device.ids[:1], *IMAGE)}
    found = compare_views(view_devices(DEVICES), view_devices(relabelled(name, **facts)))
    assert (found.num_renamed, found.is_large, found.is_empty) == (1, True, False)
