"""The law of sweeps: what a node that is no sweeper writes never changes another node's place.

Random fabrics, two honest sweepers, and one liar who writes whatever its token allows: parts of
sweeps, whole or not, true or forged, of any subnet and date, and a report with invented ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from generator.ingest.claims import build_claims
from generator.ingest.inputs import Inputs
from generator.ingest.named_sweepers import NamedSweepers
from generator.ingest.sweep_choice import UsedSweep
from generator.observe.observation import observe
from generator.observe.sweep_election import confirm_sweeps, elect_sweepers
from tests.effort import examples
from tests.generator.sweep_reports import NOW, hca
from tests.packed_reports import packed
from topology.model.facts import Device, DeviceKind, FindingKind, Port
from topology.model.tree import TopologyTree
from topology.reports.fabric_status import FabricStatus
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    SweepPart,
    SweepStanding,
    build_report,
)
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SUBNET = "fe80000000000000"
SPECS = [
    SyntheticSpec(FabricKind.FAT_TREE, 16, rails=1, radix=8),
    SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8),
]
FABRICS = [build_undamaged(build_wiring(spec)) for spec in SPECS]
ABLE = SweepStanding(able=True)
subnets = st.sampled_from([SUBNET, "fe80000000000bad", "00000000000000ff"])


def status(ahead: timedelta = timedelta(), sweeping: SweepStanding | None = None) -> ReportStatus:
    return ReportStatus(observed_at=(NOW + ahead).isoformat(), sweeping=sweeping)


def hosts_of(tree: TopologyTree) -> Mapping[str, tuple[frozenset[str], ...]]:
    """Return the other hosts of each domain above each host, bottom-up."""
    return {
        node: tuple(
            frozenset(tree.nodes_of(domain))
            for domain in tree.domains
            if node in tree.nodes_of(domain)
        )
        for node in tree.nodes
    }


def forge(devices: Sequence[Device], order: Sequence[int]) -> list[Device]:
    """Return a sweep in which the HCAs have each other's GUIDs and names."""
    hcas = [device for device in devices if device.kind is DeviceKind.HOST]
    taken = iter([hcas[at % len(hcas)] for at in order])
    return [
        replace(next(taken, device), ports=device.ports)
        if device.kind is DeviceKind.HOST
        else device
        for device in devices
    ]


@st.composite
def lies(draw: st.DrawFn, node: str, devices: Sequence[Device]) -> list[NeighborReport]:
    """Draw the parts of sweeps that one node writes."""
    written: list[NeighborReport] = []
    for _ in range(draw(st.integers(1, 4))):
        order = draw(st.permutations(range(len(devices))))
        text = render_ibnetdiscover(
            {device.ids: device for device in forge(devices, order)}.values()
        )
        text = draw(st.sampled_from([text, text[: len(text) // 2], "x"]))
        ahead = timedelta(seconds=draw(st.integers(-(10**9), 2 * 10**9)))
        for part in split_sweep(text, node=node, subnet=draw(subnets), first=len(written)):
            assert isinstance(part.spec.sweep, SweepPart)
            of = draw(st.sampled_from([1, 2, 4096]))
            sweep = structs.replace(part.spec.sweep, of=of)
            spec = structs.replace(part.spec, sweep=sweep)
            written.append(structs.replace(part, spec=spec, status=status(ahead)))
    return written


@st.composite
def own_reports(draw: st.DrawFn, device: Device, name: str) -> NeighborReport:
    """Draw the liar's own report: its true ports, and invented ones in other subnets."""
    invented: list[Port] = [
        hca(f"fe8000000000b{at:03x}", f"mlx5_{80 + at}/1") for at in range(draw(st.integers(0, 4)))
    ]
    standing = draw(st.sampled_from([None, ABLE, SweepStanding(able=True, refused=(SUBNET,))]))
    lying = replace(device, ports=(*device.ports, *invented))
    return build_report(lying, name=name, status=status(sweeping=standing))


class Judged:
    """Two rounds of a cluster: an election, then an observation."""

    def __init__(self, reports: Sequence[NeighborReport], before: FabricStatus) -> None:
        named = NamedSweepers(before, has_agent_tokens=True)
        self.status = elect_sweepers(packed(reports), named=named, now=NOW, period=None)
        claims = build_claims(packed(reports), named=replace(named, status=self.status), now=NOW)
        self.used: tuple[UsedSweep, ...] = claims.used_sweeps
        self.unknown = claims.unknown_subnets
        inputs = Inputs(claims.claims, tuple(packed(reports)), findings=claims.findings)
        observed = observe(inputs, now=NOW)
        assert observed is not None
        self.observation = observed.observation
        self.places = hosts_of(self.observation.tree)


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_what_a_node_that_is_no_sweeper_writes_moves_no_other_node(data: st.DataObject) -> None:
    fabric = data.draw(st.sampled_from(FABRICS))
    devices = sweep_devices(fabric)
    claims = list(report_claims(fabric))
    honest = [
        build_report(
            claim.device, name=claim.report, status=status(sweeping=ABLE if at < 2 else None)
        )
        for at, claim in enumerate(claims)
    ]
    text = render_ibnetdiscover(devices)
    for claim in claims[:2]:
        parts = split_sweep(text, node=claim.report, subnet=SUBNET)
        honest += [structs.replace(part, status=status()) for part in parts]
    first = Judged(honest, FabricStatus())
    counted = confirm_sweeps(first.status, first.used, is_in_sync=True)
    liar = data.draw(st.sampled_from(claims[2:]))
    own = data.draw(own_reports(liar.device, liar.report))
    lies_written = data.draw(lies(liar.report, devices))
    others = [report for report in honest if report.metadata.name != liar.report]
    last = Judged([*others, own, *lies_written], counted)
    assert last.unknown == ()
    assert {key: row for key, row in last.places.items() if key != liar.report} == {
        key: row for key, row in first.places.items() if key != liar.report
    }
    assert last.status.sweepers == first.status.sweepers
    named = {
        found.device
        for found in last.observation.findings
        if found.kind is FindingKind.SWEEP_IGNORED
    }
    assert named == {liar.report}
