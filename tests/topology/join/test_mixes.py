"""Every mix of sources gives the fabric of its claims, each read from its device.

A sweep is given packed, and expanded to plain claims with devices; both must give one fabric. The
sources beside it are the node list (none, names only, or names and ids) and the hosts' reports.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.topology.join.test_swept_nodes import compare
from tests.topology.verdicts import collect_claims
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.reports.packed_reports import PackedClaim, pack_device
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.devices import DeviceBuilder
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)

MIXES = {
    "sweep": (),
    "sweep, names of nodes": ("names",),
    "sweep, node list": ("nodes",),
    "sweep, reports": ("reports",),
    "all": ("nodes", "reports"),
}


def build(kind: FabricKind) -> DamagedFabric:
    rails = 1 if kind in (FabricKind.FAT_TREE, FabricKind.DRAGONFLY_PLUS) else 2
    return build_undamaged(build_wiring(SyntheticSpec(kind, 12, rails=rails, radix=8)))


FABRICS = {kind: build(kind) for kind in FabricKind}


def texts_of(fabric: DamagedFabric) -> list[str]:
    return [
        render_ibnetdiscover(sweep_devices(fabric, plane))
        for plane in range(fabric.wiring.spec.num_planes)
    ]


def packed(text: str) -> SweptClaims:
    return SweptClaims(parse_ibnetdiscover(text.encode(), fast=NumpyReader()).devices)


def expanded(sweep: SweptClaims) -> list[Claim]:
    return [Claim(device, Origin.SWEEP) for device in sweep.devices]


def others(fabric: DamagedFabric, parts: Sequence[str]) -> list[Claim]:
    found = []
    for claim in collect_claims(fabric):
        if claim.origin is Origin.INVENTORY and "nodes" in parts:
            found.append(claim)
        elif claim.origin is Origin.INVENTORY and "names" in parts:
            name = claim.device.name
            ids = (Id(IdKind.NODE_NAME, name),)
            found.append(Claim(Device(DeviceKind.HOST, name, ids), Origin.INVENTORY))
        elif claim.origin is Origin.REPORT and "reports" in parts:
            found.append(PackedClaim(pack_device(claim.device), claim.name, node=claim.name))
    return found


def same(found: Fabric, expected: Fabric) -> None:
    assert found == expected
    compare(columns_of(found), columns_of(expected))
    shared = columns_of(found).has_shared_image, columns_of(expected).has_shared_image
    assert np.array_equal(np.asarray(shared[0]), np.asarray(shared[1]))


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("kind", FabricKind)
def test_a_packed_sweep_gives_the_fabric_of_its_claims(kind: FabricKind, mix: str) -> None:
    beside = others(FABRICS[kind], MIXES[mix])
    sweeps = [packed(text) for text in texts_of(FABRICS[kind])]
    plain = [claim for sweep in sweeps for claim in expanded(sweep)]
    same(
        build_fabric([*beside, *sweeps]),
        build_fabric([*beside, *plain]),
    )


RAIL = texts_of(FABRICS[FabricKind.RAIL])[0].encode()
LINES = RAIL.splitlines()
EDITS = st.tuples(
    st.sampled_from(["drop", "repeat", "exchange", "guid"]),
    st.integers(0, len(LINES) - 1),
    st.integers(0, len(LINES) - 1),
)


def edited(edits: Sequence[tuple[str, int, int]]) -> bytes:
    """Return the sweep with lines dropped, repeated elsewhere or exchanged, or with wrong GUIDs."""
    lines = list(LINES)
    for edit, one, other in edits:
        first, second = one % len(lines), other % len(lines)
        if edit == "drop":
            del lines[first]
        elif edit == "repeat":
            lines.insert(second, lines[first])
        elif edit == "exchange":
            lines[first], lines[second] = lines[second], lines[first]
        else:
            guids = re.findall(rb"[0-9a-f]{16}", lines[second]) or [b"0" * 15 + b"1"]
            lines[first] = re.sub(rb"[0-9a-f]{16}", guids[0], lines[first], count=1)
    return b"\n".join(lines)


def test_a_sweep_that_is_given_twice_counts_once() -> None:
    beside = others(FABRICS[FabricKind.RAIL], MIXES["all"])
    sweep, again = packed(RAIL.decode()), packed(RAIL.decode())
    same(
        build_fabric([*beside, sweep, again]),
        build_fabric([*beside, sweep]),
    )


def test_two_sweeps_of_a_subnet_may_differ() -> None:
    later = RAIL.replace(b"4xNDR", b"4xHDR", 3)
    sweeps = [packed(RAIL.decode()), packed(later.decode())]
    plain = [claim for sweep in sweeps for claim in expanded(sweep)]
    assert build_fabric(sweeps) == build_fabric(plain)


class _CountedClaim(PackedClaim):
    """A claim that counts how often its device is built."""

    __slots__ = ()
    reads: ClassVar[Counter[str]] = Counter()

    @property
    def device(self) -> Device:
        """The device."""
        self.reads[self.name] += 1
        return super().device


@pytest.mark.parametrize("mix", MIXES)
def test_each_report_is_read_once_and_no_device_of_a_sweep_is_built(
    mix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = [
        _CountedClaim(claim.packed, claim.name, node=claim.name)
        if isinstance(claim, PackedClaim)
        else claim
        for claim in others(FABRICS[FabricKind.RAIL], MIXES[mix])
    ]
    sweep = packed(RAIL.decode())
    built: list[object] = []
    monkeypatch.setattr(DeviceBuilder, "build", lambda _, records: built.append(records))
    _CountedClaim.reads.clear()
    build_fabric([*beside, sweep])
    assert built == []
    assert set(_CountedClaim.reads.values()) <= {1}
