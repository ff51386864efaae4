"""Going on from what is known equals knowing nothing: after every change, in everything.

Fabrics of all kinds, whole and damaged, reported by hosts, by switches too, listed, swept; reports
that change their state, hear others, are entangled with each other, and go.
"""

import gc
import random  # noqa: TID251 - for annotations
from collections import Counter
from collections.abc import Callable

import pytest

from tests.effort import first_of
from tests.topology.incremental.changes import (
    SPECS,
    Claims,
    all_reports,
    built,
    dice,
    entangled,
    gone,
    host_reports,
    listed,
    moved,
    reports_in,
    restated,
    swept,
    unplugged,
    with_port,
)
from topology.identity.id_owners import index_id_owners
from topology.incremental.incremental_tree import (
    MAX_CHANGES,
    PreviousGeneration,
    RebuildScope,
    TreeOptions,
    TreeState,
    build_tree_state,
)
from topology.model.claims import Claim, PreviousOwners
from topology.planes.policy import PlanePolicy, PortRule
from topology.synthetic import FabricKind, SyntheticSpec

Change = Callable[[Claims, random.Random], Claims]
CHANGES: tuple[Change, ...] = (restated, restated, moved, moved, entangled, unplugged, gone)


def assert_same(known: TreeState, whole: TreeState) -> None:
    assert known.fabric == whole.fabric
    assert known.plane == whole.plane
    assert dict(known.split.port_planes) == dict(whole.split.port_planes)
    assert known.inference_state.ranks == whole.inference_state.ranks
    assert known.inference_state.grouping == whole.inference_state.grouping
    assert known.inference_state.tree == whole.inference_state.tree
    assert known.inference_state.findings == whole.inference_state.findings
    assert known.inference_state.inference == whole.inference_state.inference


def go_on(
    known: TreeState,
    claims: Claims,
    context: PreviousGeneration,
    wanted: TreeOptions = TreeOptions(),
) -> TreeState:  # noqa: B008 - frozen
    """Return what is known after a change, compared with what is learned from nothing."""
    found = build_tree_state(claims, options=wanted, context=context, last=known)
    assert_same(found, build_tree_state(claims, options=wanted, context=context))
    return found


def walk(claims: Claims, seed: int, *, num_changes: int = 6) -> Counter[RebuildScope]:
    """Return how much was done anew for each of some random changes."""
    rng, paths = dice(seed), Counter[RebuildScope]()
    known = build_tree_state(claims)
    for _ in range(num_changes):
        for change in rng.choices(CHANGES, k=rng.choice((1, 1, 1, 3))):
            claims = change(claims, rng)
        trees = [
            known.inference_state.tree,
            known.inference_state.tree,
            known.inference_state.previous,
            None,
        ]
        owners: PreviousOwners = index_id_owners(known.fabric) if rng.random() < 0.5 else {}
        known = go_on(known, claims, PreviousGeneration(rng.choice(trees), owners))
        paths[known.scope] += 1
    return paths


@pytest.mark.parametrize("seed", first_of(range(3)))
@pytest.mark.parametrize("name", SPECS)
def test_it_goes_on_as_from_nothing(name: str, seed: int) -> None:
    rng = dice(f"{name}{seed}")
    fabric = built(SPECS[name], rng if seed % 2 else None)
    tell = rng.choice((all_reports, host_reports))
    claims = tell(fabric) + (listed(fabric) if rng.random() < 0.5 else ())
    assert walk(claims, seed).total() == 6


def test_it_asks_a_host_again_where_the_switch_tells_another_rate() -> None:
    rng = dice("storage leaves1013")
    fabric = built(SPECS["storage leaves"], rng)
    tell = rng.choice((all_reports, host_reports))
    claims = tell(fabric) + (listed(fabric) if rng.random() < 0.5 else ())
    assert walk(claims, 1013, num_changes=10).total() == 10


@pytest.mark.parametrize("seed", first_of(range(3)))
def test_it_goes_on_beside_a_sweep(seed: int) -> None:
    walk(swept(SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=16)), seed)


RAILS = SyntheticSpec(FabricKind.RAIL, 64, rails=8, radix=32)


@pytest.mark.parametrize("change", [restated, moved, unplugged])
def test_it_looks_at_one_part_for_most_single_changes(change: Change) -> None:
    rng, paths = dice(5), Counter[RebuildScope]()
    claims = all_reports(built(RAILS))
    known = build_tree_state(claims)
    for _ in range(40):
        changed = change(claims, rng)
        paths[
            build_tree_state(
                changed, context=PreviousGeneration(known.inference_state.tree), last=known
            ).scope
        ] += 1
    is_by_host = paths[RebuildScope.PART] + paths[RebuildScope.NOTHING]
    # A report of a switch may lose a cable to another switch, which is for the planes to tell.
    assert is_by_host >= (20 if change is unplugged else 36)


def test_it_does_nothing_where_nothing_changed() -> None:
    claims = all_reports(built(SPECS["rails"]))
    known = build_tree_state(claims)
    again = build_tree_state(
        claims, context=PreviousGeneration(known.inference_state.tree), last=known
    )
    assert again.scope is RebuildScope.NOTHING
    assert again.inference_state.tree is known.inference_state.tree


def test_it_learns_the_whole_again_when_a_report_goes_or_many_change() -> None:
    claims = all_reports(built(SPECS["rails"]))
    known = build_tree_state(claims)
    assert build_tree_state(gone(claims, dice(1)), last=known).scope is RebuildScope.WHOLE
    many, places = claims, reports_in(claims)
    assert len(places) > MAX_CHANGES
    for at in places:
        claim = many[at]
        assert isinstance(claim, Claim)
        many = with_port(many, at, 0, claim.device.ports[0]._replace(numa_node=7))
    assert build_tree_state(many, last=known).scope is RebuildScope.WHOLE


def test_it_joins_one_report_and_splits_the_planes_anew_where_policies_say() -> None:
    wanted = TreeOptions(policies=(PlanePolicy("mine", (PortRule(ports=("eth0",)),)),))
    claims = all_reports(built(SPECS["rails"]))
    known = build_tree_state(claims, options=wanted)
    changed = restated(claims, dice(2))
    found = go_on(known, changed, PreviousGeneration(known.inference_state.tree), wanted)
    assert found.scope is RebuildScope.JOINED
    assert (
        build_tree_state(claims, last=known).scope is RebuildScope.WHOLE
    )  # another plane is wanted


def test_it_takes_an_equal_report_for_the_same() -> None:
    claims = all_reports(built(SPECS["rails"]))
    known = build_tree_state(claims)
    copies = tuple(
        Claim(claim.device, claim.origin) for claim in claims if isinstance(claim, Claim)
    )
    assert (
        build_tree_state(
            copies, context=PreviousGeneration(known.inference_state.tree), last=known
        ).scope
        is RebuildScope.NOTHING
    )


def test_it_leaves_nothing_that_waits_for_a_collection() -> None:
    claims = all_reports(built(SPECS["rails"]))
    changed = moved(claims, dice(3))
    known = build_tree_state(claims)
    gc.collect()
    gc.disable()
    try:
        known = build_tree_state(changed, last=known)
        known = build_tree_state(claims, last=known)
        assert gc.collect() == 0, "arrays of the generation before are still there"
    finally:
        gc.enable()
