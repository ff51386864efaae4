"""Laws of trust about cables: forged frames and a lying walk move no node of others."""

import random  # noqa: TID251 - lies are drawn from a seed that hypothesis draws

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.property.liars import lie_in_a_walk, send_frames
from tests.property.test_one_liar import distinct, is_alone_in_a_domain, observed, places
from tests.property.witnesses import Scene, honest_witnesses, scenes
from topology.model.facts import DeviceKind

WALKED = scenes().filter(lambda scene: scene.has_walks)


@pytest.mark.timeout(600)
@settings(max_examples=examples(100), deadline=None)
@given(WALKED, st.randoms(use_true_random=False), st.booleans())
def test_a_host_that_sends_frames_in_the_name_of_another_moves_itself_alone(
    scene: Scene,
    rng: random.Random,
    has_history: bool,  # noqa: FBT001 - hypothesis passes it so
) -> None:
    sender = rng.choice(scene.nodes)
    forged = send_frames(scene, sender, rng)
    assume(forged is not None)
    assert forged is not None
    honest = observed(honest_witnesses(scene, sender))
    now = observed(forged, honest if has_history else None)
    others = frozenset(scene.nodes) - {sender}
    before, after = (places(one.observation.tree, others, has_names=False) for one in (honest, now))
    if is_alone_in_a_domain(honest.observation.tree, sender):
        before, after = (
            {node: distinct(levels) for node, levels in found.items()} for found in (before, after)
        )
    assert after == before, forged.lies


@pytest.mark.timeout(600)
@settings(max_examples=examples(100), deadline=None)
@given(WALKED, st.randoms(use_true_random=False))
def test_a_switch_that_lies_in_its_walk_takes_no_node_from_another_leaf(
    scene: Scene, rng: random.Random
) -> None:
    devices = scene.devices()
    switch = rng.choice([name for name, one in devices.items() if one.kind is DeviceKind.SWITCH])
    own_ids = {*devices[switch].ids}
    own_nodes = {
        name
        for name, device in devices.items()
        for port in device.ports
        for neighbor in port.neighbors
        if own_ids.intersection(neighbor.device_ids)
    }
    others = frozenset(scene.nodes) - own_nodes
    forged = lie_in_a_walk(scene, switch, rng)
    leaves = [
        {node: levels[0][2] for node, levels in found.items()}
        for witnesses in (honest_witnesses(scene, switch), forged)
        for found in (places(observed(witnesses).observation.tree, others, has_names=False),)
    ]
    assert leaves[0] == leaves[1], forged.lies
