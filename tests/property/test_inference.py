"""Laws of the inference over synthetic fabrics: order, partition, truth, and stable names."""

import json
import random  # noqa: TID251 - shuffles claims, from the seed that hypothesis draws
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples, first_of
from tests.topology.verdicts import collect_claims, draw_scene, infer_from
from tests.verify.judgement import TreeVerdict, judge_tree
from topology.inference.tree_inference import Inference
from topology.model.claims import Claim, Origin
from topology.model.errors import ConfigError
from topology.model.facts import Device, FindingKind, Medium, Neighbor, Source, render_finding
from topology.model.ids import Id, IdKind
from topology.model.tree import host_partitions, parse_tree, render_tree
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    NamePolicy,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    derive_truth,
)

NUM_SEEDS = 150


@st.composite
def wirings(draw: st.DrawFn) -> DamagedFabric:
    spec = SyntheticSpec(
        draw(st.sampled_from(FabricKind)),
        draw(st.integers(8, 64)),
        rails=draw(st.sampled_from((2, 4, 8))),
        radix=draw(st.sampled_from((8, 12, 16))),
        tiers=draw(st.sampled_from((None, 2, 3))),
        medium=draw(st.sampled_from((Medium.INFINIBAND, Medium.ETHERNET))),
        names=draw(st.sampled_from(NamePolicy)),
    )
    try:
        return build_undamaged(build_wiring(spec))
    except ConfigError:
        assume(condition=False)
        raise


@st.composite
def damaged_fabrics(draw: st.DrawFn) -> DamagedFabric:
    scene = draw_scene(draw(st.integers(0, 10**6)))
    assume(scene is not None)
    assert scene is not None
    return scene.damaged


def printed(inference: Inference) -> str:
    findings = [render_finding(finding) for finding in inference.findings]
    return json.dumps([render_tree(inference.tree), findings])


def judged(damaged: DamagedFabric) -> TreeVerdict:
    """Return the verdict on the inference of a damaged fabric."""
    return judge_tree(derive_truth(damaged), infer_from(collect_claims(damaged))).verdict


def shuffled(claims: list[Claim], rng: random.Random) -> list[Claim]:
    """Return the claims, their ports and the neighbors of these, all in another order."""
    return [
        replace(
            claim,
            device=replace(
                claim.device,
                ports=tuple(
                    port._replace(neighbors=tuple(rng.sample(port.neighbors, len(port.neighbors))))
                    for port in rng.sample(claim.device.ports, len(claim.device.ports))
                ),
            ),
        )
        for claim in rng.sample(claims, len(claims))
    ]


@settings(max_examples=examples(20))
@given(damaged_fabrics(), st.randoms(use_true_random=False))
def test_it_prints_the_same_for_any_order(damaged: DamagedFabric, rng: random.Random) -> None:
    claims = collect_claims(damaged)
    assert printed(infer_from(shuffled(claims, rng))) == printed(infer_from(claims))


@settings(max_examples=examples(40))
@given(damaged_fabrics())
def test_it_places_every_node_once_or_gives_a_reason(damaged: DamagedFabric) -> None:
    tree = infer_from(collect_claims(damaged)).tree
    assert tree.all_nodes == tuple(sorted(host.name for host in damaged.wiring.hosts))
    leaves = [node for domain in tree.domains if domain.tier == 1 for node in domain.nodes]
    assert sorted(leaves) == sorted(tree.nodes)
    assert all(unplaced.reason for unplaced in tree.unplaced)


@settings(max_examples=examples(40))
@given(damaged_fabrics())
def test_it_changes_nothing_when_it_runs_again_on_its_tree(damaged: DamagedFabric) -> None:
    claims = collect_claims(damaged)
    first = infer_from(claims)
    assert printed(infer_from(claims, previous=first.tree)) == printed(first)
    assert parse_tree(render_tree(first.tree)) == first.tree


@settings(max_examples=examples(40))
@given(wirings())
def test_it_finds_exactly_what_was_built(whole: DamagedFabric) -> None:
    inference = infer_from(collect_claims(whole))
    assert host_partitions(inference.tree) == host_partitions(derive_truth(whole))
    assert {finding.kind for finding in inference.findings} <= {FindingKind.UNDECIDABLE}
    assert inference.tree.unplaced == ()


@pytest.mark.parametrize("first", first_of(range(0, NUM_SEEDS, 30)))
def test_it_is_never_silently_wrong_about_a_damaged_fabric(first: int) -> None:
    scenes = [scene for seed in range(first, first + 30) if (scene := draw_scene(seed))]
    verdicts = {scene.title: judged(scene.damaged) for scene in scenes}
    assert [title for title, verdict in verdicts.items() if verdict is TreeVerdict.SILENT] == []
    exact = sum(verdict is TreeVerdict.EXACT for verdict in verdicts.values())
    assert exact >= 0.8 * len(verdicts)


@settings(max_examples=examples(30))
@given(wirings(), st.data())
def test_it_renames_nothing_when_one_cable_or_switch_is_lost(
    whole: DamagedFabric, data: st.DataObject
) -> None:
    before = infer_from(collect_claims(whole)).tree
    switch = data.draw(st.sampled_from([switch.name for switch in whole.wiring.switches]))
    lost_cable = data.draw(st.sampled_from(whole.cables))
    losses = [
        replace(whole, cables=tuple(cable for cable in whole.cables if cable != lost_cable)),
        replace(
            whole,
            cables=tuple(
                cable
                for cable in whole.cables
                if switch not in (cable.low.device, cable.high.device)
            ),
            lost_switches=frozenset({switch}),
        ),
    ]
    old = {
        (domain.tier, frozenset(before.nodes_of(domain))): domain.name for domain in before.domains
    }
    for damaged in losses:
        after = infer_from(collect_claims(damaged), previous=before).tree
        for domain in after.domains:
            key = (domain.tier, frozenset(after.nodes_of(domain)))
            assert domain.name == old.get(key, domain.name)


HOSTILE = st.text(max_size=40) | st.sampled_from(
    ["\x1b[31mred", "a\nb", "\u202eevil", "../../etc", "x" * 10_000, "", "'\"", "localhost", "\x00"]
)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(HOSTILE, HOSTILE, HOSTILE), min_size=1, max_size=6))
def test_it_shows_no_control_character_for_any_device_name(
    names: list[tuple[str, str, str]],
) -> None:
    whole = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)))
    claims = collect_claims(whole) if len(names) % 2 else []
    for index, (device, port, far_name) in enumerate(names):
        neighbor = Neighbor(
            (Id(IdKind.CHASSIS_ID, far_name, "local"), Id(IdKind.MAC, device)),
            far_name,
            (Id(IdKind.PORT_ID, port, "local"),),
            port,
            Source.LLDP,
        )
        copied_device = collect_claims(whole)[index].device
        ports = tuple(
            own_port._replace(name=port, neighbors=(neighbor,)) for own_port in copied_device.ports
        )
        ids = tuple(
            sorted((*copied_device.ids, Id(IdKind.NODE_NAME, device), Id(IdKind.MAC, port)))
        )
        claims.append(Claim(Device(copied_device.kind, device, ids, ports), Origin.REPORT))
        claims.append(Claim(Device(copied_device.kind, far_name, ids, ports), Origin.CAPTURE))
    inference = infer_from(claims)
    shown = [
        text
        for finding in inference.findings
        for text in (
            finding.message,
            finding.device,
            finding.port or "",
            *(part for end in finding.ports for part in end),
            *(part for pair in finding.swap for end in pair for part in end),
        )
    ]
    shown += [unplaced.reason for unplaced in inference.tree.unplaced]
    shown += [name for domain in inference.tree.domains for name in domain.switches]
    assert [text for text in shown if not text.isprintable()] == []


@pytest.mark.parametrize("seed", [47, 62, 101, 136, 142, 208, 432, 530, 1549, 1703, 62589, 73856])
def test_it_is_not_silently_wrong_about_fabrics_of_past_errors(seed: int) -> None:
    scene = draw_scene(seed)
    assert scene is not None
    assert judged(scene.damaged) is not TreeVerdict.SILENT
