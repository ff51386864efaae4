"""More true sources never give a worse fabric, whatever the words in which they describe it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

import pytest

from tests.effort import IS_ALL, first_of
from tests.topology.compute_trees import infer_compute_tree
from tests.topology.source_views import DIALECTS, FAMILIES, PLAIN, VIEWS, fabric_of, speak
from topology.cabling.plan_diff import compare_cabling
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan, PlannedCable
from topology.model.claims import Claim, SweptClaims
from topology.model.facts import FindingKind, Medium
from topology.model.tree import TopologyTree
from topology.synthetic import (
    DamagedFabric,
    build_undamaged,
    build_wiring,
    derive_truth,
    sweep_devices,
)

PLAIN_DIALECT = "MAC addresses"
LISTS = ("a list of names", "a list with ids")
UNCONNECTED = {
    *(("captures of switches in files of other names", listed) for listed in LISTS),
    *(
        (captured, listed, "no names")
        for captured in ("captures without a chassis", "captures of switches without a chassis")
        for listed in LISTS
    ),
    *(
        (nameless, "captures of switches in files of other names", "no names")
        for nameless in ("walks without a chassis id", "captures of switches without a chassis")
    ),
}
"""Pairs, some in one dialect only, in which no source says which device the other one means."""
PAIRS = tuple(combinations(VIEWS, 2))
TRIPLES = tuple(combinations(VIEWS, 3))
BESIDE_SWEEPS = (
    *("half of the walks", "captures", "captures of half the hosts", "polls", "walks"),
    *("captures of half the switches", "captures without a chassis"),
)
Domain = tuple[int, frozenset[str]]
"""The tier and the nodes of a domain."""


class Verdict(NamedTuple):
    """How much of the truth a set of sources gives."""

    true_domains: frozenset[Domain]
    false_domains: frozenset[Domain]
    num_as_planned: int
    num_differences: int
    findings: frozenset[FindingKind]


def domains_of(tree: TopologyTree) -> frozenset[Domain]:
    return frozenset((domain.tier, frozenset(tree.nodes_of(domain))) for domain in tree.domains)


def plan_of(fabric: DamagedFabric) -> CablingPlan:
    cables = enumerate(fabric.cables, 1)
    return CablingPlan(tuple(PlannedCable(*low, *high, line) for line, (low, high) in cables))


def judge(claims: Iterable[Claim], fabric: DamagedFabric) -> Verdict:
    """Return what claims give, compared with the truth."""
    joined = build_fabric(claims)
    inference = infer_compute_tree(joined)
    true_domains, domains = domains_of(derive_truth(fabric)), domains_of(inference.tree)
    diff = compare_cabling(plan_of(fabric), joined)
    return Verdict(
        domains & true_domains,
        domains - true_domains,
        diff.num_as_planned,
        len(diff.differences),
        frozenset(finding.kind for finding in inference.findings) - {FindingKind.GUESSED_KIND},
    )


@cache
def judged(family: str, dialect: str, *views: str) -> Verdict:
    """Return the verdict on views of a fabric whose switches use a dialect."""
    fabric = fabric_of(family)
    claims = (claim for view in views for claim in VIEWS[view](fabric))
    return judge(speak(claims, fabric, DIALECTS[dialect]), fabric)


@cache
def judged_plainly(family: str, dialect: str, *views: str) -> Verdict:
    """Return the verdict on the same facts if every source used strong ids.

    Capabilities are facts: a dialect without them has none in plain words, either.
    """
    fabric = fabric_of(family)
    claims = (claim for view in views for claim in PLAIN.get(view, VIEWS[view])(fabric))
    words = dialect if dialect == "no capabilities" else PLAIN_DIALECT
    return judge(dict.fromkeys(speak(claims, fabric, DIALECTS[words])), fabric)


def describe_worse(family: str, dialect: str, views: tuple[str, ...]) -> str:
    """Return what is worse with all views than with one, or than with the same facts in plain.

    Empty if nothing is.
    """
    pairs = set(combinations(views, 2))
    if (pairs | {(*pair, dialect) for pair in pairs}) & UNCONNECTED:
        return ""
    both, plain = judged(family, dialect, *views), judged_plainly(family, dialect, *views)
    alone = [judged(family, dialect, view) for view in views]
    known = plain.findings.union(*(one.findings for one in alone))
    problems = {
        "fewer domains": plain.true_domains.union(*(one.true_domains for one in alone))
        - both.true_domains
        - _lost_in_plain(alone, plain),
        "false domains": len(both.false_domains) > len(plain.false_domains),
        "fewer cables as planned": both.num_as_planned < max(one.num_as_planned for one in alone),
        "more differences": both.num_differences > max(one.num_differences for one in alone),
        "new findings": both.findings - known,
    }
    found = [f"{problem}: {value}" for problem, value in problems.items() if value]
    return f"{' + '.join(views)}: {'; '.join(found)}" if found else ""


def _lost_in_plain(alone: Iterable[Verdict], plain: Verdict) -> frozenset[Domain]:
    """Return the domains that a part of the cables shows by chance, and more cables do not."""
    return frozenset().union(*(one.true_domains for one in alone)) - plain.true_domains


CASES = first_of(
    [
        (family, dialect)
        for dialect in DIALECTS
        for family in FAMILIES
        if dialect == PLAIN_DIALECT or family == "rails"
    ],
    num_quick=2,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_never_worse_with_a_further_true_source(case: tuple[str, str]) -> None:
    family, dialect = case
    pairs = PAIRS if IS_ALL else PAIRS[::3]
    worse = [text for views in pairs if (text := describe_worse(family, dialect, views))]
    assert not worse, "\n".join(worse)


@pytest.mark.parametrize("family", first_of(FAMILIES))
def test_it_is_never_worse_with_a_third_true_source(family: str) -> None:
    triples = TRIPLES if IS_ALL else TRIPLES[::15]
    worse = [text for views in triples if (text := describe_worse(family, PLAIN_DIALECT, views))]
    assert not worse, "\n".join(worse)


@pytest.mark.parametrize("view", BESIDE_SWEEPS)
@pytest.mark.parametrize("family", first_of(FAMILIES))
def test_a_sweep_of_the_same_hosts_beside_part_of_the_sources_adds_no_finding(
    family: str, view: str
) -> None:
    cabled_alike = build_undamaged(
        build_wiring(replace(FAMILIES[family], medium=Medium.INFINIBAND))
    )
    sweep = SweptClaims(tuple(sweep_devices(cabled_alike)))
    claims = VIEWS[view](fabric_of(family))
    sources: list[tuple[Claim | SweptClaims, ...]] = [claims, (sweep,), (*claims, sweep)]
    alone, swept, both = (
        Counter(one.kind for one in infer_compute_tree(build_fabric(given)).findings)
        for given in sources
    )
    assert both - alone - swept == Counter()
    assert FindingKind.UNRESOLVED_HOST not in both


@pytest.mark.parametrize("family", first_of(FAMILIES))
def test_a_sweep_beside_walks_of_half_the_switches_adds_no_finding_without_capabilities(
    family: str,
) -> None:
    fabric = fabric_of(family)
    cabled_alike = build_undamaged(
        build_wiring(replace(FAMILIES[family], medium=Medium.INFINIBAND))
    )
    claims = speak(VIEWS["half of the walks"](fabric), fabric, DIALECTS["no capabilities"])
    joined = build_fabric((*claims, SweptClaims(tuple(sweep_devices(cabled_alike)))))
    kinds = {one.kind for one in infer_compute_tree(joined).findings}
    assert FindingKind.UNRESOLVED_HOST not in kinds


@pytest.mark.parametrize("family", first_of(FAMILIES))
def test_a_sweep_beside_reports_without_hcas_adds_one_finding_and_moves_nobody(family: str) -> None:
    fabric = fabric_of(family)
    cabled_alike = build_undamaged(
        build_wiring(replace(FAMILIES[family], medium=Medium.INFINIBAND))
    )
    sweep = SweptClaims(tuple(sweep_devices(cabled_alike)))
    reports = VIEWS["agents"](fabric)
    alone = infer_compute_tree(build_fabric(reports))
    both = infer_compute_tree(build_fabric((*reports, sweep)))
    assert domains_of(both.tree) == domains_of(alone.tree)
    added = [one for one in both.findings if one.kind is FindingKind.UNRESOLVED_HOST]
    assert len(added) == 1
    assert "whose reports list no HCA" in added[0].message
    assert len(both.findings) == len(alone.findings) + 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("family", first_of(FAMILIES))
def test_it_gives_the_true_tree_from_all_sources_together(family: str, dialect: str) -> None:
    both = judged(family, dialect, *VIEWS)
    assert not both.false_domains
    assert both.true_domains == domains_of(derive_truth(fabric_of(family)))
    is_split = FAMILIES[family].islands > 0
    assert both.findings == ({FindingKind.ISLAND} if is_split else set())
    assert both.num_differences == 0


@pytest.mark.parametrize("listed", LISTS)
def test_it_says_what_joins_captures_that_name_no_known_device(listed: str) -> None:
    fabric = fabric_of("rails")
    nameless = "captures of switches in files of other names"
    claims = speak(
        (*VIEWS[nameless](fabric), *VIEWS[listed](fabric)), fabric, DIALECTS[PLAIN_DIALECT]
    )
    findings = infer_compute_tree(build_fabric(claims)).findings
    (found,) = (one for one in findings if one.kind is FindingKind.UNRESOLVED_HOST)
    assert "Save `lldpcli show chassis -f json0` as NAME.chassis.json0" in found.message
