"""Facts that are kept are equal to what was told, with equal ids as one object."""

from pathlib import Path

import pytest

from generator import shared_facts
from generator.shared_facts import FactPool
from generator.store.directory import read_reports
from tests.generator.scenes import PAIRS, RAILS, Scene
from topology.facts import Device
from topology.ids import Id
from topology.report import device_of
from topology.synthetic import FabricSpec


@pytest.fixture(params=[RAILS, PAIRS], ids=["infiniband", "ethernet"])
def devices(request: pytest.FixtureRequest, tmp_path: Path) -> list[Device]:
    spec: FabricSpec = request.param
    reports = read_reports(Scene.of(tmp_path, spec).reports()).reports
    return [device for report in reports if (device := device_of(report)) is not None]


def ids_of(devices: list[Device]) -> list[Id]:
    ports = [port for device in devices for port in device.ports]
    heard = [one for port in ports for one in port.neighbors]
    rows = [device.ids for device in devices] + [port.ids for port in ports]
    rows += [row for one in heard for row in (one.device_ids, one.port_ids)]
    return [one for row in rows for one in row]


def test_it_says_what_was_told(devices: list[Device]) -> None:
    pool = FactPool()
    assert [pool.share(device) for device in devices] == devices


def test_it_keeps_equal_ids_once(devices: list[Device]) -> None:
    pool = FactPool()
    found = ids_of([pool.share(device) for device in devices])
    assert len({id(one) for one in found}) == len(set(found)) < len(found)


def test_it_forgets_what_became_too_much(
    devices: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_facts, "_MAX_POOLED", 0)
    pool = FactPool()
    first, second = pool.share(devices[0]), pool.share(devices[0])
    assert first == second
    assert first.ids[0] is second.ids[0]  # as they came
    again = device_copy(devices[0])
    assert pool.share(again).ids[0] is again.ids[0]


def device_copy(device: Device) -> Device:
    """Return an equal device whose own ids are other objects."""
    ids = tuple(Id(*one) for one in device.ids)
    return Device(device.kind, device.name, ids, device.ports)
