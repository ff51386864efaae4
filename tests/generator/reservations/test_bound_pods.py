"""Bound pods use up their reservation: each place is counted exactly once."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from generator.objects.pods import BoundPod
from generator.objects.reservation import ReservationPhase as Phase
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from tests.generator.reservations.worlds import NOON, World, cluster, id_of, request_of

LATER = NOON + timedelta(seconds=5)
ONE: Mapping[str, int] = {"slots": 1}


def pod(
    node: str,
    gang: str = "ns/a",
    since: datetime | None = LATER,
    amounts: Mapping[str, int] = ONE,
) -> BoundPod:
    return BoundPod(gang, node, since, amounts)


class Bound(World):
    """Two nodes of four slots, minus the slots of bound pods."""

    def __init__(self) -> None:
        super().__init__(cluster(num_nodes=2, slots=4, per_leaf=2))

    def bind(self, *pods: BoundPod) -> None:
        taken = {
            node: sum(bound.requests["slots"] for bound in pods if bound.node == node)
            for node in ("n0", "n1")
        }
        nodes = {
            name: NodeSpec(name, {"slots": 4}, free={"slots": 4 - num})
            for name, num in taken.items()
        }
        self.ledger.publish(build_snapshot(self.base.tree, nodes), pods)

    def room(self, gang: str = "ns/other") -> int:
        """Return how many pods of a gang of the same priority fit."""
        snapshot = self.ledger.snapshot
        assert snapshot is not None
        sizes = (n for n in range(8, 0, -1) if place(snapshot, request_of(gang, n)).is_feasible)
        return next(sizes, 0)

    def phase(self) -> Phase:
        self.ledger.tick()
        return self.store.rows[id_of(1)].phase


@pytest.fixture
def world() -> Bound:
    """Four slots of one node are confirmed."""
    made = Bound()
    made.made(count=4, groups=[{"name": "w", "count": 4, "required": "node"}])
    made.confirm()
    assert made.room() == 4
    return made


def home(world: Bound) -> str:
    (run,) = world.store.rows[id_of(1)].groups[0].runs
    assert run.node is not None
    return run.node


def other(world: Bound) -> str:
    return {"n0": "n1", "n1": "n0"}[home(world)]


def test_it_counts_each_place_once_while_pods_are_bound(world: Bound) -> None:
    node = home(world)
    for num in range(4):
        world.bind(*[pod(node)] * num)
        assert (world.room(), world.phase()) == (4, Phase.CONFIRMED)
    world.bind(*[pod(node)] * 4)
    assert world.room() == 4
    assert world.phase() is Phase.RELEASED
    assert world.store.rows[id_of(1)].message == "its pods are bound"
    assert world.room() == 4
    world.bind()
    assert world.room() == 8, "the pods have ended, and the reservation with them"


def test_it_ignores_pods_of_other_gangs(world: Bound) -> None:
    world.bind(*[pod(other(world), gang="ns/other")] * 4)
    assert (world.room("ns/x"), world.phase()) == (0, Phase.CONFIRMED)


def test_it_ignores_pods_that_ran_before_it(world: Bound) -> None:
    node = home(world)
    earlier = NOON - timedelta(seconds=1)
    world.bind(*[pod(node, since=earlier)] * 2)
    assert world.phase() is Phase.CONFIRMED
    world.bind(*[pod(node, since=None)] * 4)
    assert world.phase() is Phase.CONFIRMED, "the time of binding is unknown"
    world.bind(*[pod(node, since=NOON)] * 4)
    assert world.phase() is Phase.RELEASED


def test_it_holds_its_places_until_all_pods_run_elsewhere(world: Bound) -> None:
    away = other(world)
    world.bind(*[pod(away)] * 3)
    assert (world.room(), world.phase()) == (1, Phase.CONFIRMED)
    world.bind(*[pod(away)] * 4)
    assert world.phase() is Phase.RELEASED
    assert world.room() == 4


def test_it_is_used_up_before_it_is_confirmed(world: Bound) -> None:
    world.release()
    world.made(2, count=2)
    (run,) = world.store.rows[id_of(2)].groups[0].runs
    world.bind(*[pod(run.node or "")] * 2)
    world.ledger.tick()
    assert world.store.rows[id_of(2)].phase is Phase.RELEASED


def test_it_uses_the_oldest_reservation_of_a_gang_first() -> None:
    world = Bound()
    world.made(1, count=2)
    world.clock.pass_s(1)
    world.made(2, count=2)
    first, second = (world.store.rows[id_of(at)].groups[0].runs[0].node for at in (1, 2))
    assert (first, second).count(first) == 2, "both are on the fuller node"
    world.bind(*[pod(first or "", since=LATER)] * 2)
    world.ledger.tick()
    phases = [world.store.rows[id_of(at)].phase for at in (1, 2)]
    assert phases == [Phase.RELEASED, Phase.RESERVED]
    assert world.room() == 4
    world.confirm(2)
    world.clock.pass_s(10**6)
    world.ledger.tick()
    assert world.room() == 4, "the ended reservation still explains the pods"
    world.release(2)
    world.ledger.tick()
    assert id_of(1) not in world.store.rows


def test_it_assigns_pods_to_the_next_reservation_after_expiry() -> None:
    world = Bound()
    world.made(1, count=2, ttl_s=1)
    world.clock.pass_s(2)
    second = world.made(2, count=2)
    world.bind(*[pod(second.groups[0].runs[0].node or "", since=LATER)] * 2)
    world.ledger.tick()
    phases = [world.store.rows[id_of(at)].phase for at in (1, 2)]
    assert phases == [Phase.EXPIRED, Phase.RELEASED]


@pytest.mark.parametrize(
    ("amounts", "kept"),
    [
        pytest.param({"slots": 3}, 1, id="the largest that fits"),
        pytest.param({"slots": 1}, 3, id="the small group"),
        pytest.param({}, 3, id="the smallest if none fits"),
    ],
)
def test_it_chooses_the_group_of_a_pod(amounts: Mapping[str, int], kept: int) -> None:
    world = Bound()
    large = {"name": "large", "count": 1, "request": {"slots": 3}}
    small = {"name": "small", "count": 1, "request": {"slots": 1}}
    made = world.made(groups=[large, small], required="node")
    node = made.groups[0].runs[0].node or ""
    world.ledger.publish(world.base, [pod(node, amounts=amounts)])
    assert world.ledger.count_reserved().amounts == {"slots": kept}


def test_it_ignores_pods_without_a_reservation() -> None:
    world = Bound()
    world.made(count=2)
    world.bind(pod("n0", gang="ns/stranger"), pod("n9"))
    world.ledger.tick()
    assert world.store.rows[id_of(1)].phase is Phase.RESERVED


def test_an_exclusive_domain_stays_closed_until_the_reservation_is_released() -> None:
    world = Bound()
    world.made(count=4, groups=[{"name": "w", "count": 4, "required": "node"}], exclusive="node")
    world.confirm()
    node = home(world)
    world.bind(*[pod(node)] * 4)
    assert (world.room(), world.phase()) == (4, Phase.CONFIRMED)
    world.bind()  # the pods have ended
    assert world.room() == 4
    world.release()
    assert world.room() == 8
