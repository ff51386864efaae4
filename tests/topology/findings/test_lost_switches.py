"""A switch that is gone is one finding, and a whole fabric has none.

Symmetry decides if another pod, plane or set of switches has the cables that are gone, or if their
ports are between ports in use. Where all leaves are cabled to the same spines, the first and the
last spine leave no trace: the fabric looks as if it was built with one spine less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples, first_of
from tests.topology.lost_switches import (
    FABRICS,
    LARGE,
    Fabric,
    check_named,
    find_lost,
    infer,
    list_neighbors,
    list_positions,
    name,
    rails,
)
from topology.findings.finding_causes import drop_consequences
from topology.model.errors import ConfigError
from topology.model.facts import FindingKind, Medium
from topology.model.name_ranges import find_gap, fold_texts
from topology.synthetic import FabricKind, FaultSpec, SyntheticSpec, build_wiring


def check_losses(fabric: Fabric) -> None:
    wiring = build_wiring(fabric.spec)
    assert find_lost(wiring) == []
    assert find_lost(wiring, wiring.hosts[len(wiring.hosts) // 2].name) == []
    for rank, switch, is_at_end in list_positions(wiring):
        causes = drop_consequences(infer(wiring, switch).inference.findings)
        found = [finding for finding in causes if finding.kind is FindingKind.LOST_SWITCH]
        assert causes == found, switch
        if fabric.is_one_pod and rank > 1 and is_at_end:
            assert found == [], switch
            continue
        assert len(found) == 1, switch
        check_named(wiring, switch, found[0])


@pytest.mark.parametrize("fabric", first_of(FABRICS, 4), ids=name)
def test_a_lost_switch_is_one_finding_that_names_its_neighbors(fabric: Fabric) -> None:
    check_losses(fabric)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fabric", LARGE, ids=name)
def test_a_lost_switch_of_a_large_fabric_is_one_finding(fabric: Fabric) -> None:
    check_losses(fabric)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param(
            [f"spine-p{pod:02}-19" for pod in range(1, 33)], "spine-p[01-32]-19", id="of each pod"
        ),
        pytest.param(["leaf-1", "leaf-2", "leaf-4"], "leaf-[1-2,4]", id="numbered at the end"),
        pytest.param(["33", "34"], "[33-34]", id="that are numbers"),
        pytest.param(["a-1-x", "a-2-y"], "a-1-x,a-2-y", id="that differ twice"),
        pytest.param(["core"], "core", id="alone"),
        pytest.param(
            [f"leaf-g{group:02}-r{rail}" for group in range(8, 13) for rail in (1, 2, 3)],
            "leaf-g[08-12]-r[1-3]",
            id="of each rail of each group",
        ),
        pytest.param(
            ["leaf-g1-r1", "leaf-g1-r2", "leaf-g2-r1"],
            "leaf-g1-r[1-2],leaf-g2-r1",
            id="of some rails",
        ),
    ],
)
def test_it_names_neighbors_in_few_words(names: list[str], text: str) -> None:
    assert fold_texts(names) == text


@pytest.mark.parametrize(
    ("names", "lost"),
    [
        pytest.param(["leaf-1-a", "leaf-3-a"], "leaf-2-a", id="the number between"),
        pytest.param(["core-099", "core-100", "core-102"], "core-101", id="as wide as the others"),
        pytest.param(["core-08", "core-10"], "core-09", id="with the zeros of the others"),
        pytest.param(["core-1", "core-2"], "", id="none in a whole sequence"),
        pytest.param(["core-1", "core-4"], "", id="none of several"),
        pytest.param(["a-1-1", "a-3-2"], "", id="none of names that differ twice"),
        pytest.param(["core"], "", id="none of one name"),
        pytest.param([], "", id="none of no name"),
    ],
)
def test_a_sequence_of_names_lacks(names: list[str], lost: str) -> None:
    assert find_gap(names) == lost


def test_the_names_of_its_peers_name_a_lost_switch() -> None:
    (finding,) = find_lost(build_wiring(rails(96, 4, 16)), "spine-p02-03")
    assert finding.lost_name == "spine-p02-03"
    assert "by the names of its peers spine-p02-03, is gone" in finding.message


def test_a_long_list_of_neighbors_ends_after_a_name() -> None:
    names = [f"spine-{letter * 8}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    shown, cut = fold_texts(names).removesuffix(",…").split(","), fold_texts(names)[-2:]
    assert (shown, cut) == (names[: len(shown)], ",…")


@pytest.mark.parametrize(
    ("spec", "lost"),
    [
        pytest.param(rails(200, 2, 12), "spine-p12-02", id="above two leaves"),
        pytest.param(rails(96, 4, 16), "spine-p02-03", id="above eight leaves"),
    ],
)
def test_a_lost_spine_names_the_switches_below_and_above_it(spec: SyntheticSpec, lost: str) -> None:
    wiring = build_wiring(spec)
    (finding,) = find_lost(wiring, lost)
    assert {end.device for end in finding.ports} == list_neighbors(wiring, lost)


@pytest.mark.parametrize(
    ("spec", "lost"),
    [
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 96, rails=4, radix=16),
            ("spine-p01-02", "spine-p03-05"),
            id="spines of two pods",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.DUAL_PLANE, 128, rails=4),
            ("leaf-g01-a-r1", "spine-b-03"),
            id="a leaf and a spine of another plane",
        ),
    ],
)
def test_several_lost_switches_are_as_many_findings(
    spec: SyntheticSpec, lost: Sequence[str]
) -> None:
    assert len(find_lost(build_wiring(spec), *lost)) == len(lost)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(FaultSpec(lose_links=0.01), id="few lost cables"),
        pytest.param(FaultSpec(lose_links=0.1), id="many lost cables"),
        pytest.param(FaultSpec(swap=0.05), id="swapped cables"),
        pytest.param(FaultSpec(silent=0.2), id="silent hosts"),
        pytest.param(FaultSpec(lose_hosts=5), id="hosts that are off"),
    ],
)
@pytest.mark.parametrize("fabric", first_of(FABRICS, 4), ids=name)
def test_other_faults_are_no_lost_switch(fabric: Fabric, faults: FaultSpec) -> None:
    assert find_lost(build_wiring(fabric.spec), faults=faults) == []


@pytest.mark.parametrize(
    "spec",
    [
        SyntheticSpec(FabricKind.FAT_TREE, 128, radix=16, tiers=3),
        SyntheticSpec(FabricKind.RAIL, 96, rails=4, radix=16),
        SyntheticSpec(FabricKind.DUAL_PLANE, 128, rails=4),
        SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 128, radix=16),
    ],
    ids=lambda spec: spec.kind.value,
)
def test_spines_that_are_installed_in_no_pod_are_not_lost(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    spines: dict[object, list[str]] = defaultdict(list)
    for switch in wiring.switches:
        if switch.rank == 2:
            spines[switch.path, switch.plane].append(switch.name)
    assert find_lost(wiring, *(names[1] for names in spines.values())) == []


@pytest.mark.parametrize("uplinks", [3, 5, 7])
def test_a_leaf_whose_hosts_are_off_is_no_missing_link_of_spines(uplinks: int) -> None:
    wiring = build_wiring(
        SyntheticSpec(FabricKind.FAT_TREE, 128, radix=16, tiers=3, uplinks=uplinks)
    )
    leaf = next(switch.name for switch in wiring.switches if switch.rank == 1)
    names = {switch.name for switch in wiring.switches}
    hosts = list_neighbors(wiring, leaf) - names
    findings = infer(wiring, *hosts).inference.findings
    kinds = {row.kind for row in findings if row.device in names}
    assert kinds.isdisjoint({FindingKind.LOST_SWITCH, FindingKind.MISSING_LINK})


@st.composite
def specs(draw: st.DrawFn) -> SyntheticSpec:
    """Draw a fabric of any kind and size; its last pods and leaves are often partly built."""
    kind = draw(st.sampled_from(FabricKind))
    radix = 2 * draw(st.integers(2, 12))
    is_dragonfly, is_paired = kind is FabricKind.DRAGONFLY_PLUS, kind is FabricKind.DUAL_HOMED
    return SyntheticSpec(
        kind,
        draw(st.integers(1, 200)),
        rails=draw(st.sampled_from((1, 2, 3, 4, 8))),
        radix=radix,
        tiers=None if is_dragonfly else draw(st.sampled_from((None, 2, 3, 4))),
        medium=draw(st.sampled_from((Medium.ETHERNET, Medium.INFINIBAND))),
        uplinks=draw(st.none() | st.integers(1, radix // 2)),
        peer_links=draw(st.integers(0, 2)) if is_paired else 0,
        islands=draw(st.sampled_from((0, 0, 0, 1))),
    )


@settings(max_examples=examples(400))
@given(specs())
def test_a_whole_fabric_has_no_lost_switch(spec: SyntheticSpec) -> None:
    try:
        wiring = build_wiring(spec)
    except ConfigError:
        assume(False)  # noqa: FBT003 - the parameter has no name
    assert find_lost(wiring) == []
