"""Dumps of the fabric managers: each gives the same devices as a sweep of the fabric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.golden import Golden
from tests.topology.compute_trees import infer_compute_tree
from tests.topology.sources.damage import damaged
from tests.topology.sources.ibnetdiscover.dump_text import db_csv, net_dump, subnet_lst
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.plain import case_id, cases, expected_text
from tests.topology.synthetic.fabrics import SPECS, seeded
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind, Medium, ParseResult
from topology.model.tree import host_partitions, render_tree
from topology.sources.infiniband.ibdiagnet_db import parse_ibdiagnet_db
from topology.sources.infiniband.ibdiagnet_net_dump import parse_ibdiagnet_net_dump
from topology.sources.infiniband.subnet_lst import parse_subnet_lst
from topology.synthetic import (
    FaultSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

Reader = Callable[..., ParseResult]
READERS: dict[str, Reader] = {
    "lst": parse_subnet_lst,
    "db_csv": parse_ibdiagnet_db,
    "net_dump": parse_ibdiagnet_net_dump,
}
CASES = [*cases("opensm"), *cases("ibdiagnet")]
INFINIBAND = {name: spec for name, spec in SPECS.items() if spec.medium is Medium.INFINIBAND}


def reader_of(path: Path) -> Reader:
    return READERS[path.suffix.removeprefix(".")]


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_it_reads_a_dump_as_expected(path: Path, golden: Golden) -> None:
    parsed = reader_of(path)(path.read_bytes(), source=path.name)
    golden.check(path.with_name("expected.json"), expected_text(parsed))


def swept(name: str, *, is_damaged: bool) -> Sequence[Device]:
    """Return the devices that ibnetdiscover would print for a synthetic fabric."""
    fabric = build_undamaged(build_wiring(INFINIBAND[name]))
    if is_damaged:
        fabric = damage_fabric(fabric.wiring, FaultSpec(lose_links=0.1, swap=0.1), seeded(1))
    text = render_ibnetdiscover(sweep_devices(fabric))
    return parse_ibnetdiscover(text.encode()).devices


@pytest.mark.parametrize("name", INFINIBAND)
@pytest.mark.parametrize("is_damaged", [False, True], ids=["whole", "damaged"])
def test_it_returns_the_devices_of_a_sweep(name: str, is_damaged: bool) -> None:  # noqa: FBT001
    devices = swept(name, is_damaged=is_damaged)
    linked = tuple(one for one in devices if one.ports)
    assert parse_ibdiagnet_db(db_csv(devices).encode()) == ParseResult(devices)
    assert parse_subnet_lst(subnet_lst(devices).encode()) == ParseResult(linked)


def tree_of(devices: Sequence[Device]) -> dict[str, object]:
    return render_tree(
        infer_compute_tree(build_fabric(Claim(one, Origin.SWEEP) for one in devices)).tree
    )


@pytest.mark.parametrize("label", ["{}", "1/{}/1", "sw{}p1"])
@pytest.mark.parametrize("name", INFINIBAND)
def test_it_gives_the_tree_of_a_sweep_from_switches_only(name: str, label: str) -> None:
    devices = swept(name, is_damaged=True)
    parsed = parse_ibdiagnet_net_dump(net_dump(devices, label=label).encode())
    assert parsed.errors == ()
    assert tree_of(parsed.devices) == tree_of(devices)


@given(st.sampled_from(sorted(READERS)), st.binary(max_size=300))
@settings(max_examples=examples(200))
def test_it_never_raises_on_any_bytes(form: str, raw: bytes) -> None:
    assert isinstance(READERS[form](raw, source="x"), ParseResult)


@given(st.sampled_from(CASES).flatmap(lambda path: st.tuples(st.just(path), damaged([path]))))
@settings(max_examples=examples(200))
def test_it_places_every_error_in_a_damaged_dump(drawn: tuple[Path, bytes]) -> None:
    path, raw = drawn
    parsed = reader_of(path)(raw, source="dump")
    assert all(error.source == "dump" for error in parsed.errors)
    fabric = build_fabric(Claim(one, Origin.SWEEP) for one in parsed.devices)
    assert host_partitions(infer_compute_tree(fabric).tree) is not None


FORGED = "x} LID:0001 PN:01 } { CA Ports:01 SystemGUID:0002c9010000"


@pytest.mark.parametrize(
    "text", [FORGED, '"a", Mellanox, 0x1, LID 1', "a: b : c", "} {", '"', "a,b"]
)
def test_it_parses_a_description_as_nothing_else(text: str) -> None:
    # The parser of ibnetdiscover is the reference for the meaning of a description.
    raw = render_ibnetdiscover(swept("one full leaf alone", is_damaged=False))
    raw = raw.replace("node-0002 mlx5_0", f"{text} mlx5_0")
    devices = parse_ibnetdiscover(raw.encode()).devices
    assert any(one.model == f"{text} mlx5_0" for one in devices)
    assert parse_subnet_lst(subnet_lst(devices).encode()).devices == devices
    assert parse_ibdiagnet_db(db_csv(devices).encode()).devices == devices
    parsed = parse_ibdiagnet_net_dump(net_dump(devices).encode())
    switches = tuple(one for one in devices if one.kind is DeviceKind.SWITCH)
    heard = {
        one.device_name for device in switches for port in device.ports for one in port.neighbors
    }
    assert parsed.errors == ()
    assert {
        one.device_name
        for device in parsed.devices
        for port in device.ports
        for one in port.neighbors
    } == heard
