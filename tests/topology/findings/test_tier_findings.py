"""Findings about tiers that may not be what they seem, one scene a test."""

import pytest

from tests.topology.cables import End, hosts, infer_cables, mesh, of_kind, star, tiers_of
from topology.inference.tree_inference import Inference
from topology.model.facts import Finding, FindingKind, Severity

SPINES = ["spine-1", "spine-2"]
Cables = list[tuple[End, End]]


def leaf(name: str, first: int, uppers: list[str], *, parallel: int = 2) -> Cables:
    """Return a leaf with four hosts, cabled to switches above it."""
    return [*star(name, hosts(first, first + 3)), *mesh([name], uppers, parallel=parallel)]


def pair(name: str, first: int, uppers: list[str]) -> Cables:
    """Return two leaves with four hosts on both, cabled to switches above them."""
    ends = [f"{name}-1", f"{name}-2"]
    cables = [
        *star(ends[0], hosts(first, first + 3)),
        *star(ends[1], hosts(first, first + 3), "eth1"),
    ]
    return [*cables, *mesh(ends, uppers, parallel=2)]


def finding_of(inference: Inference, kind: FindingKind, about: str) -> Finding:
    """Return the only finding of a kind whose device is `about`."""
    (finding,) = [one for one in of_kind(inference.findings, kind) if one.device == about]
    return finding


PODS = [
    *leaf("leaf-a", 1, SPINES),
    *leaf("leaf-b", 5, SPINES),
    *leaf("leaf-y", 11, ["spine-8", "spine-9"]),
    *leaf("leaf-z", 15, ["spine-8", "spine-9"]),
    *mesh([*SPINES, "spine-8", "spine-9"], ["core-1", "core-2"], parallel=2),
]


def test_it_reports_nothing_about_two_pods_below_cores() -> None:
    assert infer_cables(PODS).findings == ()


def test_it_reports_a_cable_from_a_leaf_that_skips_its_spines() -> None:
    past = (("leaf-a", "astray"), ("core-1", "stray"))
    inference = infer_cables([*PODS, past])
    assert tiers_of(inference) == tiers_of(infer_cables(PODS))
    finding = finding_of(inference, FindingKind.TIER_MISMATCH, "leaf-a")
    assert (finding.port, finding.severity) == ("astray", Severity.WARNING)
    assert {end.port for end in finding.ports} == {"astray", "stray"}
    assert "skips spine-1, spine-2" in finding.message


def test_it_reports_a_pod_that_is_shallower_than_its_siblings() -> None:
    inference = infer_cables([*PODS, *leaf("leaf-s", 21, ["core-1", "core-2"])])
    finding = finding_of(inference, FindingKind.TIER_MISMATCH, "leaf-s")
    assert finding.severity is Severity.INFO
    assert "is 2 tiers below core-1, core-2; other domains are 1 below" in finding.message


def test_it_reports_leaves_with_spines_that_no_other_leaf_uses() -> None:
    cables = [*leaf("leaf-a", 1, ["spine-a"]), *leaf("leaf-b", 5, ["spine-b"])]
    inference = infer_cables([*cables, *mesh(["spine-a", "spine-b"], ["core-1", "core-2"])])
    finding = finding_of(inference, FindingKind.UNDECIDABLE, "leaf-a")
    assert {end.device for end in finding.ports} == {"leaf-a", "leaf-b", "spine-a", "spine-b"}
    assert finding.severity is Severity.INFO


def test_it_doubts_two_leaves_that_may_be_a_pair_like_the_others() -> None:
    whole = [*pair("p", 1, SPINES), *pair("q", 5, SPINES)]
    torn = [*star("r-1", ["h11"]), *star("r-2", ["h12"], "eth1")]
    inference = infer_cables([*whole, *torn, *mesh(["r-1", "r-2"], SPINES, parallel=2)])
    finding = finding_of(inference, FindingKind.UNDECIDABLE, "r-1")
    assert {end.device for end in finding.ports} == {"r-1", "r-2"}


def test_it_doubts_two_leaves_of_a_pod_with_hosts_tied_between_them() -> None:
    both = [*star("leaf-a", ["h31", "h32"], "eth0"), *star("leaf-b", ["h31", "h32"], "eth1")]
    alone = [*leaf("leaf-a", 1, SPINES), *leaf("leaf-b", 5, SPINES)]
    inference = infer_cables([*alone, *both, *pair("p", 11, SPINES)])
    finding = finding_of(inference, FindingKind.UNDECIDABLE, "leaf-a")
    assert {end.device for end in finding.ports} == {"leaf-a", "leaf-b"}
    assert [unplaced.node for unplaced in inference.tree.unplaced] == ["h31", "h32"]


RAILS = [f"rail-{number}" for number in range(1, 5)]
OTHER_RAILS = [f"other-{number}" for number in range(1, 5)]


def on_rails(rails: list[str], names: list[str]) -> Cables:
    """Return a cable from each host to each of some rails."""
    return [cable for rail in rails for cable in star(rail, names, f"to-{rail}")]


WITH_FEW_RAILS = [
    *on_rails(OTHER_RAILS, hosts(21, 28)),
    *on_rails(RAILS, hosts(1, 4)),
    *on_rails(RAILS[:2], hosts(5, 7)),
    *on_rails(RAILS[2:], hosts(8, 10)),
    *mesh([*RAILS, *OTHER_RAILS], SPINES, parallel=2),
]
"""Two groups of four rails; in the first, most hosts are cabled to two rails only."""


def test_it_makes_one_domain_of_rails_of_which_some_hosts_use_two() -> None:
    inference = infer_cables(WITH_FEW_RAILS)
    assert sorted(tiers_of(inference)[0].values()) == [hosts(1, 10), hosts(21, 28)]
    assert of_kind(inference.findings, FindingKind.UNDECIDABLE) == []


def test_it_doubts_rails_that_fall_apart_because_hosts_with_all_rails_lost_a_cable() -> None:
    lost = {(f"h0{number}", f"to-rail-{(5 - number)}") for number in (1, 2, 3, 4)}
    inference = infer_cables(cable for cable in WITH_FEW_RAILS if cable[0] not in lost)
    parts = sorted(tiers_of(inference)[0].values())
    assert parts == [["h01", "h02", *hosts(5, 7)], ["h03", "h04", *hosts(8, 10)], hosts(21, 28)]
    (doubt,) = of_kind(inference.findings, FindingKind.UNDECIDABLE)
    assert {doubt.device, *(end.device for end in doubt.ports)} == set(RAILS)
    assert "may be one" in doubt.message


def test_it_makes_one_domain_of_two_spines_with_cables_between_them() -> None:
    leaves = [*leaf("leaf-a", 1, SPINES), *leaf("leaf-b", 5, SPINES)]
    inference = infer_cables([*leaves, *mesh(["spine-1"], ["spine-2"])])
    assert tiers_of(inference)[1] == {"spine-1-2": hosts(1, 8)}
    assert inference.findings == ()


def test_it_doubts_a_leaf_with_up_links_to_other_spines_than_its_peer() -> None:
    ends = [*star("p-1", hosts(31, 34)), *star("p-2", hosts(31, 34), "eth1")]
    ups = [*mesh(["p-1"], SPINES, parallel=3), *mesh(["p-2"], ["spine-8", "spine-9"], parallel=2)]
    finding = finding_of(infer_cables([*PODS, *ends, *ups]), FindingKind.UNDECIDABLE, "p-2")
    assert {end.device for end in finding.ports} == {"p-1", "p-2"}
    assert "most of its up-links lead to spine-8, spine-9" in finding.message


def test_it_doubts_a_domain_of_spines_with_as_many_cables_between_them_as_down() -> None:
    leaves = [*leaf("leaf-a", 1, SPINES, parallel=1), *leaf("leaf-b", 5, SPINES, parallel=1)]
    inference = infer_cables([*leaves, *mesh(["spine-1"], ["spine-2"], parallel=2)])
    assert tiers_of(inference)[1] == {"spine-1-2": hosts(1, 8)}
    assert (
        "cabled to each other" in finding_of(inference, FindingKind.UNDECIDABLE, "spine-1").message
    )


@pytest.mark.parametrize(
    ("parallel", "tiers"),
    [
        pytest.param(2, ("leaf", "spine"), id="as wide as a leaf: a leaf without hosts"),
        pytest.param(3, ("leaf", "spine", "core"), id="wider than any leaf: a tier"),
    ],
)
def test_it_makes_a_tier_of_a_top_that_adds_no_path_only_where_it_is_wide(
    parallel: int, tiers: tuple[str, ...]
) -> None:
    pod = [*leaf("leaf-a", 1, SPINES), *leaf("leaf-b", 5, SPINES)]
    inference = infer_cables([*pod, *mesh(SPINES, ["top"], parallel=parallel)])
    assert inference.tree.tiers == tiers
    kind = FindingKind.UNDECIDABLE if len(tiers) > 2 else FindingKind.AUX_SWITCH
    assert finding_of(inference, kind, "top").severity is Severity.INFO


def test_it_sets_a_pod_without_leaves_aside_instead_of_putting_it_on_top() -> None:
    bare = mesh(["spine-x", "spine-y"], ["core-1", "core-2"], parallel=2)
    inference = infer_cables([*PODS, *bare])
    assert inference.tree.tiers == ("leaf", "spine", "core")
    finding = finding_of(inference, FindingKind.AUX_SWITCH, "spine-x")
    assert {end.device for end in finding.ports} == {"spine-x", "spine-y"}
