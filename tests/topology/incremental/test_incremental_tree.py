"""An incremental update equals a full rebuild after every change, in all its results.

Covers fabrics of all kinds, undamaged and damaged, with reports of hosts alone or of switches too,
with an inventory or a sweep. Reports change their ports, move cables, share neighbors, and go away.
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
    host_reports,
    listed,
    moved,
    renamed,
    reports_in,
    restated,
    swept,
    unplugged,
    with_port,
    without_report,
)
from tests.topology.inference.test_nvlink_domains import in_cliques
from tests.topology.source_views import DIALECTS, VIEWS, fabric_of, speak
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
from topology.model.facts import Medium
from topology.planes.policy import PlanePolicy, PortRule
from topology.synthetic import FabricKind, SyntheticSpec

Change = Callable[[Claims, random.Random], Claims]
CHANGES: tuple[Change, ...] = (
    restated,
    restated,
    moved,
    moved,
    entangled,
    unplugged,
    without_report,
)


def assert_same(state: TreeState, full: TreeState) -> None:
    assert state.fabric == full.fabric
    assert state.plane == full.plane
    assert dict(state.split.port_planes) == dict(full.split.port_planes)
    assert state.inference_state.ranks == full.inference_state.ranks
    assert state.inference_state.grouping == full.inference_state.grouping
    assert state.inference_state.tree == full.inference_state.tree
    assert state.inference_state.findings == full.inference_state.findings
    assert state.inference_state.inference == full.inference_state.inference


def update_checked(
    state: TreeState,
    claims: Claims,
    context: PreviousGeneration,
    options: TreeOptions = TreeOptions(),  # noqa: B008 - frozen
) -> TreeState:
    """Return the updated state, after comparing it with a full rebuild."""
    updated = build_tree_state(claims, options=options, context=context, last=state)
    assert_same(updated, build_tree_state(claims, options=options, context=context))
    return updated


def walk(claims: Claims, seed: int, *, num_changes: int = 6) -> Counter[RebuildScope]:
    """Apply random changes; return how often each scope was rebuilt."""
    rng, scopes = dice(seed), Counter[RebuildScope]()
    state = build_tree_state(claims)
    for _ in range(num_changes):
        for change in rng.choices(CHANGES, k=rng.choice((1, 1, 1, 3))):
            claims = change(claims, rng)
        trees = [
            state.inference_state.tree,
            state.inference_state.tree,
            state.inference_state.previous,
            None,
        ]
        owners: PreviousOwners = index_id_owners(state.fabric) if rng.random() < 0.5 else {}
        state = update_checked(state, claims, PreviousGeneration(rng.choice(trees), owners))
        scopes[state.scope] += 1
    return scopes


@pytest.mark.parametrize("seed", first_of(range(3)))
@pytest.mark.parametrize("name", SPECS)
def test_it_updates_to_the_same_state_as_a_full_rebuild(name: str, seed: int) -> None:
    rng = dice(f"{name}{seed}")
    fabric = built(SPECS[name], rng if seed % 2 else None)
    select_reports = rng.choice((all_reports, host_reports))
    claims = select_reports(fabric) + (listed(fabric) if rng.random() < 0.5 else ())
    assert walk(claims, seed).total() == 6


@pytest.mark.parametrize("seed", first_of(range(6)))
def test_it_updates_a_fleet_that_has_just_too_few_hosts_in_nvlink_domains(seed: int) -> None:
    fleet = built(SyntheticSpec(FabricKind.RAIL, 41, rails=2, radix=16, medium=Medium.ETHERNET))
    pair = [host.name for host in fleet.wiring.hosts[:2]]
    reports = [claim for claim in all_reports(fleet) if isinstance(claim, Claim)]
    walk(tuple(in_cliques(reports, {1: pair})), seed, num_changes=12)


def test_it_checks_a_host_again_if_its_switch_reports_another_rate() -> None:
    rng = dice("storage leaves1013")
    fabric = built(SPECS["storage leaves"], rng)
    select_reports = rng.choice((all_reports, host_reports))
    claims = select_reports(fabric) + (listed(fabric) if rng.random() < 0.5 else ())
    assert walk(claims, 1013, num_changes=10).total() == 10


@pytest.mark.parametrize("seed", first_of(range(3)))
def test_it_updates_reports_beside_a_sweep(seed: int) -> None:
    walk(swept(SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=16)), seed)


@pytest.mark.parametrize("seed", first_of(range(6)))
@pytest.mark.parametrize("name", first_of(SPECS))
def test_it_updates_hosts_that_only_their_names_match_to_nodes(name: str, seed: int) -> None:
    fabric = built(SPECS[name], dice(f"{name}{seed}") if seed % 2 else None)
    claims = renamed(fabric)
    tree = build_tree_state(claims).inference_state.tree
    assert len(tree.nodes) > len(fabric.wiring.hosts) / 2
    walk(claims, seed)


WORDY_VIEWS = (
    ("agents", "walks without a chassis id"),
    ("agents", "captures of switches in files of other names"),
    ("agents", "half of the walks", "captures without a chassis"),
    ("agents", "polls", "a list of names"),
)


@pytest.mark.parametrize("dialect", first_of(("MAC addresses", "no names", "names as chassis ids")))
@pytest.mark.parametrize("views", WORDY_VIEWS, ids=" and ".join)
def test_it_updates_sources_that_describe_devices_in_different_words(
    views: tuple[str, str], dialect: str
) -> None:
    fabric = fabric_of("rails")
    claims = (claim for view in views for claim in VIEWS[view](fabric))
    walk(speak(claims, fabric, DIALECTS[dialect]), 7, num_changes=8)


RAILS = SyntheticSpec(FabricKind.RAIL, 64, rails=8, radix=32)


@pytest.mark.parametrize("change", [restated, moved, unplugged])
def test_it_rebuilds_only_a_part_for_most_single_changes(change: Change) -> None:
    rng, scopes = dice(5), Counter[RebuildScope]()
    claims = all_reports(built(RAILS))
    state = build_tree_state(claims)
    for _ in range(40):
        changed = change(claims, rng)
        scopes[
            build_tree_state(
                changed, context=PreviousGeneration(state.inference_state.tree), last=state
            ).scope
        ] += 1
    is_by_host = scopes[RebuildScope.PART] + scopes[RebuildScope.NOTHING]
    # A report of a switch may lose a cable to another switch; then the planes are split again.
    assert is_by_host >= (20 if change is unplugged else 36)


def test_it_rebuilds_nothing_if_nothing_changed() -> None:
    claims = all_reports(built(SPECS["rails"]))
    state = build_tree_state(claims)
    again = build_tree_state(
        claims, context=PreviousGeneration(state.inference_state.tree), last=state
    )
    assert again.scope is RebuildScope.NOTHING
    assert again.inference_state.tree is state.inference_state.tree


def test_it_rebuilds_all_if_a_report_is_removed_or_many_change() -> None:
    claims = all_reports(built(SPECS["rails"]))
    state = build_tree_state(claims)
    assert build_tree_state(without_report(claims, dice(1)), last=state).scope is RebuildScope.WHOLE
    many, indexes = claims, reports_in(claims)
    assert len(indexes) > MAX_CHANGES
    for index in indexes:
        claim = many[index]
        assert isinstance(claim, Claim)
        many = with_port(many, index, 0, claim.device.ports[0]._replace(numa_node=7))
    assert build_tree_state(many, last=state).scope is RebuildScope.WHOLE


def test_it_joins_one_report_and_splits_all_planes_if_there_are_policies() -> None:
    options = TreeOptions(policies=(PlanePolicy("mine", (PortRule(ports=("eth0",)),)),))
    claims = all_reports(built(SPECS["rails"]))
    state = build_tree_state(claims, options=options)
    changed = restated(claims, dice(2))
    updated = update_checked(
        state, changed, PreviousGeneration(state.inference_state.tree), options
    )
    assert updated.scope is RebuildScope.JOINED
    assert build_tree_state(claims, last=state).scope is RebuildScope.WHOLE  # the options differ


def test_it_treats_an_equal_report_as_unchanged() -> None:
    claims = all_reports(built(SPECS["rails"]))
    state = build_tree_state(claims)
    copies = tuple(
        Claim(claim.device, claim.origin) for claim in claims if isinstance(claim, Claim)
    )
    assert (
        build_tree_state(
            copies, context=PreviousGeneration(state.inference_state.tree), last=state
        ).scope
        is RebuildScope.NOTHING
    )


def test_it_leaves_no_garbage_for_the_collector() -> None:
    claims = all_reports(built(SPECS["rails"]))
    changed = moved(claims, dice(3))
    state = build_tree_state(claims)
    gc.collect()
    gc.disable()
    try:
        state = build_tree_state(changed, last=state)
        state = build_tree_state(claims, last=state)
        assert gc.collect() == 0, "arrays of the last generation are still there"
    finally:
        gc.enable()
