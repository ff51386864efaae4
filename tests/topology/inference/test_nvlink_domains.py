"""NVLink domains: a tier below the leaves where they nest, else a finding."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from tests.topology.cables import (
    End,
    claims,
    heard_from,
    hosts,
    infer_cables,
    listed,
    mac_of,
    mesh,
    of_kind,
    star,
    tiers_of,
)
from tests.topology.verdicts import infer_from
from topology.inference.tree_inference import Inference, tier_names
from topology.model.claims import Claim
from topology.model.facts import (
    DeviceKind,
    FindingKind,
    Medium,
    Neighbor,
    Port,
    PortState,
    Severity,
    Source,
)
from topology.model.ids import Id, IdKind
from topology.model.tree import parse_tree, render_tree

UUID = "3a1c6a9e-64ad-4b23-9b14-1b3a0a0fa94b"
LEAVES = {"leaf-a": hosts(1, 4), "leaf-b": hosts(5, 8)}
CABLES = [
    *star("leaf-a", hosts(1, 4)),
    *star("leaf-b", hosts(5, 8)),
    *mesh(list(LEAVES), ["spine-1", "spine-2"], parallel=2),
]


def nvlink(clique: int) -> Port:
    """Return the port that an agent reports for a clique."""
    domain = Neighbor(
        device_ids=(Id(IdKind.CHASSIS_ID, f"{UUID}.{clique}", "nvlink"),),
        device_name=f"nvlink-{UUID[:8]}-{clique}",
        port_ids=(),
        port_name="",
        source=Source.OTHER,
        kind=DeviceKind.SWITCH,
    )
    return Port("nvlink", medium=Medium.NVLINK, state=PortState.UP, neighbors=(domain,))


def in_cliques(reports: Iterable[Claim], cliques: Mapping[int, Iterable[str]]) -> list[Claim]:
    """Return claims with the port of each host's clique added."""
    clique_of = {host: clique for clique, members in cliques.items() for host in members}
    return [
        replace(claim, device=replace(claim.device, ports=(*claim.device.ports, nvlink(clique))))
        if (clique := clique_of.get(claim.device.name)) is not None
        else claim
        for claim in reports
    ]


def inferred(
    cliques: Mapping[int, Iterable[str]], cables: Iterable[tuple[End, End]] = CABLES
) -> Inference:
    return infer_from(in_cliques(claims(cables), cliques))


def domain(clique: int) -> str:
    return f"nvlink-{UUID[:8]}-{clique}"


def test_it_makes_a_tier_of_cliques_below_the_leaves() -> None:
    inference = inferred({1: hosts(1, 2), 2: hosts(3, 4), 3: hosts(5, 8)})
    assert inference.tree.tiers == ("nvlink", "leaf", "spine")
    assert tiers_of(inference) == [
        {domain(1): hosts(1, 2), domain(2): hosts(3, 4), domain(3): hosts(5, 8)},
        LEAVES,
        {"spine-1-2": hosts(1, 8)},
    ]
    assert inference.findings == ()
    assert parse_tree(render_tree(inference.tree)) == inference.tree


def test_it_makes_a_domain_for_each_host_without_a_clique() -> None:
    inference = inferred({1: hosts(1, 3)})
    alone = {f"nvlink-{host}": [host] for host in ["h04", *hosts(5, 8)]}
    assert tiers_of(inference)[0] == {domain(1): hosts(1, 3), **alone}
    assert tiers_of(inference)[1] == LEAVES


def test_it_reports_hosts_without_a_report_that_are_alone_in_the_tier() -> None:
    reports = in_cliques(claims(CABLES, silent=["h02"]), {1: hosts(1, 4), 2: hosts(5, 8)})
    inference = infer_from([*reports, listed("h02", Id(IdKind.MAC, mac_of("h02")))])
    assert tiers_of(inference)[0]["nvlink-h02"] == ["h02"]
    (finding,) = of_kind(inference.findings, FindingKind.UNDECIDABLE)
    assert (finding.device, finding.severity) == ("h02", Severity.WARNING)


def test_it_splits_a_clique_per_leaf_and_reports_it_where_most_nest() -> None:
    inference = inferred({1: hosts(1, 2), 2: hosts(3, 5), 3: hosts(6, 8)})
    lowest = sorted(sorted(nodes) for nodes in tiers_of(inference)[0].values())
    assert lowest == [hosts(1, 2), hosts(3, 4), hosts(5, 5), hosts(6, 8)]
    (finding,) = of_kind(inference.findings, FindingKind.TIER_MISMATCH)
    assert finding.device == domain(2)
    assert [end.device for end in finding.ports] == hosts(3, 5)
    assert "h03, h04 and h05" in finding.message


def test_it_keeps_to_the_network_where_cliques_cut_across_leaves() -> None:
    inference = inferred({1: ["h01", "h02", "h05", "h06"], 2: ["h03", "h04", "h07", "h08"]})
    assert tiers_of(inference) == [LEAVES, {"spine-1-2": hosts(1, 8)}]
    assert len(of_kind(inference.findings, FindingKind.TIER_MISMATCH)) == 2


@pytest.mark.parametrize(
    "cliques", [{}, {1: ["h99"]}], ids=["no clique", "a clique of an unknown host"]
)
def test_it_makes_no_tier_without_cliques(cliques: Mapping[int, Iterable[str]]) -> None:
    assert inferred(cliques).tree == infer_cables(CABLES).tree


@pytest.mark.parametrize("host", ["h01", "h08"])
def test_one_host_adds_no_tier_of_cliques(host: str) -> None:
    assert inferred({1: [host]}).tree == infer_cables(CABLES).tree


FLEET = [f"h{number:03}" for number in range(128)]
FLEET_CABLES = [
    *(cable for at in range(8) for cable in star(f"leaf-{at}", FLEET[at * 16 : at * 16 + 16])),
    *mesh([f"leaf-{at}" for at in range(8)], ["spine-1", "spine-2"]),
]


@pytest.mark.parametrize(
    "cliques",
    [
        {1: FLEET[:2]},
        {1: FLEET[:1], 2: FLEET[127:]},
        {1: FLEET[:6]},
        {number: FLEET[number * 16 : number * 16 + 2] for number in range(3)},
    ],
    ids=["two in a leaf", "two apart", "six of 128", "two in each of three leaves"],
)
def test_few_hosts_add_no_tier_of_cliques_and_are_named(
    cliques: Mapping[int, list[str]],
) -> None:
    inference = inferred(cliques, FLEET_CABLES)
    assert inference.tree == infer_cables(FLEET_CABLES).tree
    (finding,) = of_kind(inference.findings, FindingKind.TIER_MISMATCH)
    named = sorted(host for clique in cliques.values() for host in clique)
    assert [end.device for end in finding.ports] == named
    assert finding.severity is Severity.WARNING
    assert "needs 7 hosts that report one (5 %)" in finding.message


@pytest.mark.parametrize(
    "cliques",
    [
        {1: FLEET[:7]},
        {1: FLEET[:16]},
        {number: FLEET[number * 16 : number * 16 + 8] for number in range(8)},
        {number: FLEET[number * 16 : number * 16 + 16] for number in range(4)},
    ],
    ids=["seven of 128", "one rack", "half of each rack", "half of the racks"],
)
def test_a_mixed_fleet_has_a_tier_of_cliques(cliques: Mapping[int, list[str]]) -> None:
    inference = inferred(cliques, FLEET_CABLES)
    assert inference.tree.tiers == ("nvlink", "leaf", "spine")
    in_clique = {tuple(hosts) for hosts in cliques.values()}
    lowest = {tuple(sorted(nodes)) for nodes in tiers_of(inference)[0].values()}
    assert {nodes for nodes in lowest if len(nodes) > 1} == in_clique
    assert inference.findings == ()


def test_one_host_in_a_foreign_clique_takes_no_tier_away() -> None:
    inference = inferred({1: hosts(1, 3), 2: [*hosts(5, 8), "h04"]})
    assert tiers_of(inference)[0][domain(1)] == hosts(1, 3)
    assert tiers_of(inference)[1] == LEAVES


def test_the_word_of_another_host_does_not_take_a_host_out_of_its_clique() -> None:
    reports = in_cliques(claims(CABLES), {1: hosts(1, 4), 2: hosts(5, 8)})
    port = Port("nvlink", medium=Medium.NVLINK, neighbors=(heard_from("h01", "eth0"),))
    liar = next(claim for claim in reports if claim.device.name == "h08")
    twisted = Claim(replace(liar.device, ports=(*liar.device.ports[:1], port)), liar.origin)
    others = [claim for claim in reports if claim is not liar]
    assert tiers_of(infer_from([*others, twisted]))[0][domain(1)] == hosts(1, 4)


def test_it_makes_a_domain_for_a_host_in_two_cliques() -> None:
    both = in_cliques(in_cliques(claims(CABLES), {1: hosts(1, 4), 2: hosts(5, 8)}), {2: ["h01"]})
    inference = infer_from(both)
    assert tiers_of(inference)[0]["nvlink-h01"] == ["h01"]


def test_it_keeps_the_name_of_a_clique_that_changes_its_number() -> None:
    before = inferred({1: hosts(1, 4), 2: hosts(5, 8)}).tree
    reports = in_cliques(claims(CABLES), {7: hosts(1, 4), 2: hosts(5, 8)})
    after = infer_from(reports, previous=before).tree
    assert [one.name for one in after.domains] == [one.name for one in before.domains]


def test_it_leaves_a_host_unplaced_in_nvlink_that_the_network_does_not_place() -> None:
    torn = [*star("leaf-a", ["h09"]), *star("leaf-b", ["h09"], "eth1")]
    inference = inferred({1: hosts(1, 4), 2: [*hosts(5, 8), "h09"]}, [*CABLES, *torn])
    assert tiers_of(inference)[0] == {domain(1): hosts(1, 4), domain(2): hosts(5, 8)}
    assert [unplaced.node for unplaced in inference.tree.unplaced] == ["h09"]


def test_it_names_the_tier_of_cliques_first() -> None:
    assert tier_names(3, has_cliques=True) == ("nvlink", "leaf", "spine")
    assert tier_names(2, ("rack", "row", "hall"), has_cliques=True) == ("rack", "row")
