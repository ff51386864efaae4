"""Which sweep of a subnet counts, who may withhold trust, and what speaks against a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from generator.ingest.claims import ClaimBuilder, ReportClaims, build_claims
from generator.ingest.inputs import DoubtKind
from generator.ingest.named_sweepers import NamedSweepers
from tests.generator.ingest.swept_fabrics import (
    DEVICES,
    HOSTS,
    SUBNET,
    exchange,
    host_reports,
    sweep_by,
    without,
)
from tests.generator.sweep_reports import NOW, B, hca, node
from tests.packed_reports import packed
from topology.model.claims import SweptClaims
from topology.model.facts import Device, DeviceKind, FindingKind, Severity
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    SweepWitness,
)
from topology.reports.neighbor_report import NeighborReport, SweepStanding

FIRST, SECOND, THIRD, LIAR = HOSTS[0], HOSTS[1], HOSTS[2], HOSTS[9]
FORGED = exchange(HOSTS[3], HOSTS[12])
INVENTED = "fe80000000000bad"


def named(
    elected: str | None = FIRST,
    spare: str | None = SECOND,
    counted: str | None = FIRST,
    listed: Sequence[str] = (),
) -> NamedSweepers:
    """Return the nodes that the Fabric object of a cluster names."""
    roles = ((elected, SweepRole.ELECTED), (spare, SweepRole.SPARE))
    sweepers = tuple(
        Sweeper(subnet=SUBNET, node=name, device="mlx5_0", port=1, role=role)
        for name, role in roles
        if name
    )
    sweeps = (CountedSweep(subnet=SUBNET, node=counted),) if counted else ()
    status = FabricStatus(sweepers=sweepers, sweeps=sweeps)
    return NamedSweepers(status, tuple(listed), has_agent_tokens=True)


def take(
    *sweeps: Iterable[NeighborReport],
    by: NamedSweepers | None = None,
    able: Sequence[str] = (FIRST, SECOND),
) -> ReportClaims:
    """Return the claims of all hosts' reports and these sweeps, in a cluster."""
    parts = [part for sweep in sweeps for part in sweep]
    return build_claims(packed([*host_reports(able), *parts]), named=by or named(), now=NOW)


def used(claims: ReportClaims) -> list[str]:
    return [sweep.node for sweep in claims.used_sweeps]


def findings(claims: ReportClaims) -> list[tuple[FindingKind, str]]:
    return [(found.kind, found.device) for found in claims.findings]


def test_it_uses_the_elected_nodes_sweep_although_the_spares_is_newer() -> None:
    newer = sweep_by(SECOND, ahead=timedelta(minutes=1))
    claims = take(sweep_by(FIRST), newer)
    assert (used(claims), claims.findings, claims.doubts) == ([FIRST], (), ())


@pytest.mark.parametrize(
    ("sweeps", "by", "expected"),
    [
        pytest.param([sweep_by(SECOND)], named(), [SECOND], id="its spare's, until it delivers"),
        pytest.param(
            [sweep_by(THIRD)], named(counted=THIRD), [THIRD], id="its predecessor's, as long"
        ),
        pytest.param(
            [sweep_by(THIRD), sweep_by(FIRST)], named(counted=THIRD), [FIRST], id="its own first"
        ),
        pytest.param([sweep_by(THIRD)], named(listed=[THIRD]), [THIRD], id="that of a listed node"),
        pytest.param([sweep_by(FIRST)], named(listed=[THIRD]), [], id="no other than a listed one"),
        pytest.param([sweep_by(THIRD)], named(), [], id="no unnamed node's"),
        pytest.param([sweep_by(THIRD)], NamedSweepers(), [THIRD], id="any node's in a folder"),
        pytest.param(
            [sweep_by(THIRD)], NamedSweepers(listed=(FIRST,)), [], id="a listed node's in a folder"
        ),
    ],
)
def test_the_sweep_that_counts_is(
    sweeps: Sequence[Sequence[NeighborReport]], by: NamedSweepers, expected: list[str]
) -> None:
    assert used(take(*sweeps, by=by)) == expected


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(sweep_by(LIAR, FORGED), id="whole"),
        pytest.param(sweep_by(LIAR, FORGED, ahead=timedelta(days=26_000)), id="dated 2099"),
        pytest.param(sweep_by(LIAR, FORGED, subnet=INVENTED), id="of an invented subnet"),
    ],
)
def test_a_forged_sweep_counts_for_nothing_and_is_a_finding_about_its_node(
    forged: Sequence[NeighborReport],
) -> None:
    honest = take(sweep_by(FIRST), sweep_by(SECOND))
    claims = take(sweep_by(FIRST), sweep_by(SECOND), forged)
    assert set(claims.claims) == set(honest.claims)
    assert (claims.unknown_subnets, claims.problems, claims.doubts) == ((), (), ())
    (found,) = claims.findings
    assert (found.kind, found.device) == (FindingKind.SWEEP_IGNORED, LIAR)
    assert found.severity is Severity.WARNING
    assert LIAR in found.message
    assert "spec.sweepers" in found.message


@pytest.mark.parametrize("able", [[FIRST, SECOND], []], ids=["with sweepers", "without sweepers"])
def test_half_a_sweep_of_an_invented_subnet_withholds_nothing(able: list[str]) -> None:
    (half,) = sweep_by(LIAR, subnet=INVENTED)
    assert half.spec.sweep is not None
    part = structs.replace(half.spec.sweep, of=2)
    half = structs.replace(half, spec=structs.replace(half.spec, sweep=part))
    sweeps = [sweep_by(FIRST), sweep_by(SECOND)] if able else []
    claims = take(*sweeps, [half], able=able, by=named() if able else named(None, None, None))
    assert claims.unknown_subnets == ()
    assert findings(claims) == [(FindingKind.SWEEP_IGNORED, LIAR)]


def test_one_port_in_an_invented_subnet_withholds_nothing_from_others() -> None:
    liar = node(LIAR, hca(INVENTED))
    reports = [one for one in host_reports() if one.metadata.name != LIAR]
    claims = build_claims(packed([*reports, liar]), named=named(None, None, None), now=NOW)
    assert claims.unknown_subnets == ()
    assert findings(claims) == [(FindingKind.SWEEP_IGNORED, LIAR)]
    assert INVENTED in claims.findings[0].message


def test_one_node_that_offers_to_sweep_withholds_nothing_before_its_first_sweep() -> None:
    assert take(able=[LIAR], by=named(LIAR, None, None)).unknown_subnets == ()


@pytest.mark.parametrize(
    ("by", "able"),
    [
        pytest.param(named(counted=None), [FIRST, SECOND], id="two nodes offer to sweep"),
        pytest.param(named(), [FIRST], id="its sweep has counted before"),
        pytest.param(
            named(counted=None, listed=[FIRST]), [FIRST], id="a person listed the node that sweeps"
        ),
    ],
)
def test_a_subnet_without_a_sweep_is_unknown_if(by: NamedSweepers, able: list[str]) -> None:
    assert take(able=able, by=by).unknown_subnets == (SUBNET,)


def test_a_lone_subnet_is_swept_if_a_person_listed_its_node() -> None:
    reports = [node("n0", hca(B)), *sweep_by("n0", subnet=B)]
    alone = build_claims(packed(reports), named=NamedSweepers(has_agent_tokens=True), now=NOW)
    assert used(alone) == []
    by = NamedSweepers(listed=("n0",), has_agent_tokens=True)
    assert used(build_claims(packed(reports), named=by, now=NOW)) == ["n0"]


def test_a_sweep_that_is_dated_ahead_counts_once_our_clock_has_reached_it() -> None:
    reports = [*host_reports(), *sweep_by(FIRST, ahead=timedelta(minutes=6))]
    early = build_claims(packed(reports), named=named(), now=NOW)
    assert (used(early), findings(early)) == ([], [(FindingKind.SWEEP_IGNORED, FIRST)])
    assert "clock" in early.findings[0].message
    later = build_claims(packed(reports), named=named(), now=NOW + timedelta(minutes=2))
    assert (used(later), later.findings) == ([FIRST], ())


def test_times_with_different_zones_are_compared_as_times() -> None:
    (newer,) = sweep_by(SECOND)
    status = structs.replace(newer.status, observed_at="2026-01-01T22:01:00-05:00")
    sweeps = [*sweep_by(FIRST), structs.replace(newer, status=status)]
    assert used(build_claims(packed(sweeps), now=NOW)) == [SECOND]


def test_a_former_sweepers_leftover_is_only_noted() -> None:
    builder = ClaimBuilder()
    reports = [*host_reports(), *sweep_by(FIRST), *sweep_by(THIRD)]
    builder.build_claims(packed(reports), named=named(counted=THIRD), now=NOW)
    claims = builder.build_claims(packed(reports), named=named(), now=NOW)
    (found,) = claims.findings
    assert (found.device, found.severity) == (THIRD, Severity.INFO)


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        pytest.param(
            without(lambda device: device.name in HOSTS[:8]), "lacks every port of 8", id="lacks"
        ),
        pytest.param(
            [
                Device(device.kind, HOSTS[15 - HOSTS.index(device.name)], device.ids, device.ports)
                if device.kind is DeviceKind.HOST
                else device
                for device in DEVICES
            ],
            "gives the name of another host",
            id="renames",
        ),
    ],
)
def test_a_sweep_that_many_hosts_contradict_gives_way_to_the_spares(
    devices: list[Device], words: str
) -> None:
    claims = take(sweep_by(FIRST, devices), sweep_by(SECOND))
    assert used(claims) == [SECOND]
    assert findings(claims) == [(FindingKind.SWEEP_CONTRADICTED, FIRST)]
    assert words in claims.findings[0].message
    alone = take(sweep_by(FIRST, devices))
    assert used(alone) == [FIRST]
    assert [doubt.kind for doubt in alone.doubts] == [DoubtKind.SWEEP_CONTRADICTED]


def test_a_sweep_of_one_subnet_must_not_contain_the_ports_of_another() -> None:
    other = [node("m1", hca(B)), node("m2", hca(B))]
    status = named().status
    sweeper = Sweeper(subnet=B, node="m1", device="mlx5_0", port=1, role=SweepRole.ELECTED)
    status = status.model_copy(update={"sweepers": (*status.sweepers, sweeper)})
    by = NamedSweepers(status, has_agent_tokens=True)
    reports = [*host_reports(), *other, *sweep_by(FIRST), *sweep_by("m1", FORGED, subnet=B)]
    claims = build_claims(packed(reports), named=by, now=NOW)
    assert (FindingKind.SWEEP_CONTRADICTED, "m1") in findings(claims)
    assert DoubtKind.SWEEP_CONTRADICTED in {doubt.kind for doubt in claims.doubts}


@pytest.mark.parametrize("num", [1, 2])
def test_a_few_hosts_may_disagree(num: int) -> None:
    devices = without(lambda device: device.name in HOSTS[:num])
    claims = take(sweep_by(FIRST, devices), sweep_by(SECOND, devices))
    assert (used(claims), claims.findings, claims.doubts) == ([FIRST], (), ())


@pytest.mark.parametrize("liar", [FIRST, SECOND])
def test_two_sweeps_that_disagree_are_a_finding_that_names_both_and_a_doubt(liar: str) -> None:
    honest = SECOND if liar == FIRST else FIRST
    claims = take(sweep_by(liar, FORGED), sweep_by(honest))
    assert used(claims) == [FIRST]
    (found,) = claims.findings
    assert found.kind is FindingKind.SWEEPS_DISAGREE
    assert {end.device for end in found.ports} == {FIRST, SECOND}
    (doubt,) = claims.doubts
    assert doubt.kind is DoubtKind.SWEEPS_DISAGREE
    assert doubt.nodes == frozenset(HOSTS), "where most hosts of a leaf are, decides its name"


@pytest.mark.parametrize(("minutes", "num"), [(14, 1), (16, 0)])
def test_saved_sweeps_of_about_the_same_time_are_compared(minutes: int, num: int) -> None:
    later = sweep_by(SECOND, FORGED, ahead=timedelta(minutes=minutes))
    claims = build_claims(packed([*host_reports(), *sweep_by(FIRST), *later]))
    assert used(claims) == [SECOND]
    assert len(claims.findings) == len(claims.doubts) == num


def test_one_link_that_went_down_in_between_is_a_doubt_about_its_host_alone() -> None:
    claims = take(sweep_by(FIRST, without(lambda device: device.name == LIAR)), sweep_by(SECOND))
    assert claims.findings == ()
    assert [doubt.nodes for doubt in claims.doubts] == [frozenset({LIAR})]


def test_a_spine_that_only_one_sees_is_a_doubt_about_all_hosts_of_the_subnet() -> None:
    partial = without(lambda device: device.name.startswith("spine"))
    claims = take(sweep_by(FIRST, partial), sweep_by(SECOND))
    assert [doubt.nodes for doubt in claims.doubts] == [frozenset(HOSTS)]


def test_a_new_sweeper_is_confirmed_by_an_equal_sweep_alone() -> None:
    by = named(counted=THIRD)
    same = take(sweep_by(FIRST), sweep_by(THIRD), by=by)
    assert [sweep.is_confirmed for sweep in same.used_sweeps] == [True]
    by_spare = take(sweep_by(FIRST), sweep_by(SECOND), by=named(counted=None))
    assert [sweep.is_confirmed for sweep in by_spare.used_sweeps] == [True]
    for others in ([], sweep_by(THIRD, FORGED)):
        claims = take(sweep_by(FIRST), others, by=by)
        assert [sweep.is_confirmed for sweep in claims.used_sweeps] == [False]
        assert [doubt.kind for doubt in claims.doubts] == [DoubtKind.SWEEP_UNCONFIRMED]
        assert THIRD in claims.doubts[0].message


def test_a_damaged_or_partial_sweep_gives_way_and_is_a_problem() -> None:
    (part,) = sweep_by(FIRST)
    assert part.spec.sweep is not None
    spoiled = structs.replace(part.spec.sweep, facts="AAAA")
    broken = structs.replace(part, spec=structs.replace(part.spec, sweep=spoiled))
    claims = take([broken], sweep_by(SECOND))
    assert used(claims) == [SECOND]
    assert [f"{FIRST}.sweep.*" in str(problem) for problem in claims.problems] == [True]


@pytest.mark.parametrize("exists", [True, False])
def test_a_witness_whose_sweep_is_missing_stays_one_while_its_node_exists(*, exists: bool) -> None:
    witness = SweepWitness(subnet=SUBNET, node=SECOND)
    by = named(spare=THIRD)
    by = replace(by, status=by.status.model_copy(update={"witnesses": (witness,)}))
    reports = [*host_reports((FIRST, THIRD)), *sweep_by(FIRST)]
    nodes = frozenset(HOSTS) - (set() if exists else {SECOND})
    claims = build_claims(packed(reports), nodes, named=by, now=NOW)
    (used_sweep,) = claims.used_sweeps
    assert used_sweep.witness == (SECOND if exists else None)
    assert [doubt.kind for doubt in claims.doubts] == [DoubtKind.SWEEP_UNCONFIRMED]
    assert SECOND in claims.doubts[0].message


def test_a_spare_that_hosts_contradict_is_no_witness_and_is_named() -> None:
    partial = without(lambda device: device.name in HOSTS[:8])
    claims = take(sweep_by(FIRST), sweep_by(SECOND, partial))
    assert (used(claims), claims.doubts) == ([FIRST], ())
    assert findings(claims) == [(FindingKind.SWEEP_CONTRADICTED, SECOND)]


def test_it_compares_a_pair_of_sweeps_once() -> None:
    builder = ClaimBuilder()
    reports = [*host_reports(), *sweep_by(FIRST, FORGED), *sweep_by(SECOND)]
    first = builder.build_claims(packed(reports), named=named(), now=NOW)
    again = builder.build_claims(packed(reports), named=named(), now=NOW)
    assert again == first
    sweeps, same = (
        [claim.devices for claim in found.claims if isinstance(claim, SweptClaims)]
        for found in (first, again)
    )
    assert sweeps
    assert all(one is other for one, other in zip(sweeps, same, strict=True))


def test_a_sweep_standing_of_a_liar_claims_many_subnets_in_one_finding() -> None:
    ports = [hca(f"fe8000000000b{at:03x}", f"mlx5_{at}/1") for at in range(40)]
    liar = node(LIAR, *ports, sweeping=SweepStanding(able=True))
    claims = build_claims(packed([liar]), named=NamedSweepers(has_agent_tokens=True), now=NOW)
    (found,) = claims.findings
    assert "and 35 more" in found.message
    assert claims.unknown_subnets == ()
