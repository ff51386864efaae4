"""More true sources never give a worse fabric, whatever the words in which they describe it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import NamedTuple

import pytest

from tests.topology.source_views import DIALECTS, FAMILIES, VIEWS, fabric_of, speak
from tests.topology.verdicts import infer_from
from topology.cabling.plan_diff import compare_cabling
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan, PlannedCable
from topology.model.claims import Claim
from topology.model.facts import Finding, FindingKind
from topology.model.tree import TopologyTree
from topology.synthetic import DamagedFabric, derive_truth

_UNTOLD = frozenset({FindingKind.GUESSED_KIND})
"""Findings about what is not known, which a further source may change."""
Place = tuple[int, frozenset[str]]


class Verdict(NamedTuple):
    """How much of the truth a set of sources gives."""

    places: frozenset[Place]
    """True domains that the tree has: the tier and the nodes."""
    strays: frozenset[Place]
    """Domains that are not true."""
    num_as_planned: int
    num_differences: int
    findings: frozenset[tuple[str, str]]


def places_of(tree: TopologyTree) -> frozenset[Place]:
    return frozenset((domain.tier, frozenset(tree.nodes_of(domain))) for domain in tree.domains)


def plan_of(fabric: DamagedFabric) -> CablingPlan:
    return CablingPlan(
        tuple(
            PlannedCable(*low, *high, line)
            for line, (low, high) in enumerate(fabric.cables, 1)
        ),
        form="csv",
    )


def judge(claims: Iterable[Claim], fabric: DamagedFabric) -> Verdict:
    all_claims = list(claims)
    inference = infer_from(all_claims)
    true_places, places = places_of(derive_truth(fabric)), places_of(inference.tree)
    diff = compare_cabling(plan_of(fabric), build_fabric(all_claims))
    return Verdict(
        places & true_places,
        places - true_places,
        diff.num_as_planned,
        len(diff.differences),
        frozenset(map(_subject, inference.findings)),
    )


def _subject(finding: Finding) -> tuple[str, str]:
    return finding.kind, finding.device


@cache
def judged(family: str, dialect: str, *views: str) -> Verdict:
    fabric = fabric_of(family)
    claims = [claim for view in views for claim in VIEWS[view](fabric)]
    return judge(speak(claims, fabric, DIALECTS[dialect]), fabric)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_never_worse_with_a_further_true_source(family: str, dialect: str) -> None:
    worse = []
    for views in combinations(VIEWS, 2):
        both = judged(family, dialect, *views)
        alone = [judged(family, dialect, view) for view in views]
        known = frozenset().union(*(one.findings for one in alone))
        new = {kind for kind, _ in both.findings - known} - _UNTOLD
        is_worse = (
            any(one.places - both.places for one in alone)
            or len(both.strays) > min(len(one.strays) for one in alone)
            or both.num_as_planned < max(one.num_as_planned for one in alone)
        )
        if is_worse or new:
            worse.append(f"{' + '.join(views)}: {sorted(new)} {both[2:4]} {[v[2:4] for v in alone]} {len(both.places)} {[len(v.places) for v in alone]} {len(both.strays)}")
    assert not worse, "\n".join(worse)
