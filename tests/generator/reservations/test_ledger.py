"""The ledger: repeated requests, capacity, priorities, bad requests, failures of the store."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from generator.objects.reservation import ReservationPhase as Phase
from generator.placement import NodeSpec, Snapshot
from generator.placement.engine import place
from generator.reservations.ledger import MAX_WRITES_PER_TICK, ReservationLedger, SearchLimit
from generator.reservations.objects import ReservationObjects
from generator.reservations.phases import MAX_HELD, MAX_RESERVATIONS, RETENTION_S
from generator.reservations.records import LOCAL_HOLDER, Refusal, RefusalKind, ReservationResult
from generator.store.object_store import StoreFenced
from tests.generator.reservations.worlds import (
    World,
    cluster,
    id_of,
    request_of,
    reservation_request,
)
from topology.model.errors import KubeConflict, KubeUnavailable, StoreError

SMALL = {"num_nodes": 2, "slots": 4, "per_leaf": 2}


@pytest.fixture
def world() -> World:
    """Two nodes of four slots."""
    return World(cluster(**SMALL))


def fits(world: World, *, gang: str, count: int, priority: int = 0) -> bool:
    snapshot = world.ledger.snapshot
    assert snapshot is not None
    return place(snapshot, request_of(gang, count, priority)).is_feasible


def refusal(answer: object) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def test_it_gives_the_same_answer_to_the_same_request(world: World) -> None:
    first, again = world.reserve(), world.reserve()
    assert first == again
    assert isinstance(first, ReservationResult)
    assert first.placement.is_feasible
    assert sorted(first.placement.assignment) == ["w"]
    assert first.placement.tier == "node"
    assert len(world.store.rows) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"count": 3}, id="another size"),
        pytest.param({"holder": "bob"}, id="another holder"),
    ],
)
def test_it_refuses_the_same_id_for(world: World, other: dict[str, Any]) -> None:
    world.made()
    assert refusal(world.reserve(**other)).kind is RefusalKind.REUSED


def test_it_ignores_the_deadline_of_a_repeated_call(world: World) -> None:
    assert world.reserve(deadline_s=5.0) == world.reserve(deadline_s=0.5) == world.reserve()


def test_it_answers_a_repeated_request_with_the_present_phase(world: World) -> None:
    world.made()
    world.clock.pass_s(61)
    again = world.reserve()
    assert isinstance(again, ReservationResult)
    assert again.reservation is not None
    assert again.reservation.phase is Phase.EXPIRED
    assert fits(world, gang="ns/b", count=8), "the answer reserves nothing"


def test_it_keeps_the_nodes_for_the_gang_that_reserved_them(world: World) -> None:
    world.made(count=6)
    assert not fits(world, gang="ns/b", count=3)
    assert fits(world, gang="ns/b", count=2)
    assert fits(world, gang="ns/a", count=8)


def test_it_binds_gangs_of_higher_priority_only_when_confirmed(world: World) -> None:
    world.made(count=8, priority=5)
    assert not fits(world, gang="ns/b", count=1, priority=5)
    assert fits(world, gang="ns/b", count=8, priority=6)
    world.confirm()
    assert not fits(world, gang="ns/b", count=1, priority=10**12)


def test_it_expires_without_a_tick(world: World) -> None:
    world.made(count=8)
    before = world.ledger.snapshot
    assert world.ledger.snapshot is before, "the snapshot is cached while nothing changes"
    world.clock.pass_s(59.999)
    assert not fits(world, gang="ns/b", count=1)
    world.clock.pass_s(0.001)
    assert fits(world, gang="ns/b", count=8)
    assert world.store.writes == [(id_of(1),)]
    world.ledger.tick()
    assert world.store.rows[id_of(1)].phase is Phase.EXPIRED
    world.ledger.tick()
    assert len(world.store.writes) == 2, "without changes nothing is written"


def test_it_reserves_more_nodes_for_a_gang_with_a_reservation(world: World) -> None:
    first, second = world.made(1, count=4), world.made(2, count=4)
    groups = (*first.groups, *second.groups)
    nodes = {run.node for group in groups for run in group.runs}
    assert len(nodes) == 2
    answer = world.reserve(3, count=1)
    assert isinstance(answer, ReservationResult)
    assert not answer.placement.is_feasible


def test_it_reserves_nothing_for_a_trial(world: World) -> None:
    world.store.refusal = Refusal(RefusalKind.NO_LEADER, "nobody leads")
    answer = world.reserve(count=8, is_trial=True)
    assert isinstance(answer, ReservationResult)
    assert answer.placement.is_feasible
    assert answer.placement.objective, "it is explained in full"
    assert (answer.reservation, world.store.writes) == (None, [])


def test_it_preempts_the_lowest_priority_in_one_write(world: World) -> None:
    world.made(1, gang="ns/low", count=4, priority=1)
    world.made(2, gang="ns/mid", count=4, priority=2)
    world.made(3, gang="ns/high", count=4, priority=9)
    assert world.store.writes[-1] == (id_of(1), id_of(3))
    gone = world.store.rows[id_of(1)]
    assert gone.phase is Phase.RELEASED
    assert gone.message == f"preempted by {id_of(3)} of priority 9"
    assert world.store.rows[id_of(2)].phase is Phase.RESERVED
    ended = refusal(world.confirm(1))
    assert ended.kind is RefusalKind.ENDED


def test_it_preempts_nothing_while_there_is_room(world: World) -> None:
    world.made(1, gang="ns/low", count=2, priority=1)
    high = world.made(2, gang="ns/high", count=4, priority=9)
    assert world.store.writes == [(id_of(1),), (id_of(2),)]
    assert high.tier == "node"
    world.made(3, gang="ns/high", count=2, priority=9)
    assert world.store.rows[id_of(1)].phase is Phase.RESERVED


def test_it_places_again_if_its_nodes_were_reserved_during_the_search(world: World) -> None:
    original = world.ledger._place  # noqa: SLF001 - the moment between placing and writing
    calls: list[object] = []

    def interfere(capacity: Any, request: Any, limit: SearchLimit) -> Any:  # noqa: ANN401 - passed on
        found = original(capacity, request, limit)
        if not calls:
            world.store.rows |= {row.id: row for row in [other]}
        calls.append(found)
        return found

    other = World(cluster(**SMALL)).made(9, gang="ns/z", count=4)
    world.ledger._place = interfere  # type: ignore[method-assign]  # noqa: SLF001 - as above
    made = world.made(count=4)
    assert len(calls) == 2
    assert {run.node for group in made.groups for run in group.runs} == {"n1"}


def test_it_places_again_if_pods_took_its_nodes_during_the_search(world: World) -> None:
    original = world.ledger._place  # noqa: SLF001 - the moment between placing and writing
    calls: list[object] = []

    def interfere(capacity: Any, request: Any, limit: SearchLimit) -> Any:  # noqa: ANN401 - passed on
        found = original(capacity, request, limit)
        if not calls:
            full = NodeSpec("n0", {"slots": 4}, free={"slots": 0})
            empty = NodeSpec("n1", {"slots": 4})
            world.ledger.publish(Snapshot.from_tree(world.base.tree, [full, empty]))
        calls.append(found)
        return found

    world.ledger._place = interfere  # type: ignore[method-assign]  # noqa: SLF001 - as above
    made = world.made(count=4)
    assert len(calls) == 2
    assert {run.node for group in made.groups for run in group.runs} == {"n1"}


BAD = [
    ("an id that is none", {"id": "x"}, "request_id"),
    ("a UUID of version 1", {"id": "3b241101-e2bb-1255-8caf-4136c566a962"}, "request_id"),
    ("a line behind the id", {"id": f"{id_of(1)}\n"}, "request_id"),
    ("no name", {"gang": "self"}, "gang"),
    ("a path for a name", {"gang": "a/b/c"}, "gang"),
    ("a name that a terminal would act on", {"gang": "ns/\x1b[31m"}, "gang"),
    ("a group whose name is a bell", {"groups": [{"name": "\a", "count": 1}]}, "groups[0].name"),
    ("a network that is no name", {"plane": "Compute!"}, "plane"),
    ("no time", {"ttl_s": 0}, "ttl_s"),
    ("more than a day", {"ttl_s": 86_401}, "ttl_s"),
    ("a priority beyond JSON", {"priority": 1 << 54}, "priority"),
    ("victims", {"preemption": "fewestVictims"}, "preemption"),
    (
        "too many groups",
        {"groups": [{"name": f"g{at}", "count": 1} for at in range(129)]},
        "groups",
    ),
    ("a long name", {"groups": [{"name": "g" * 64, "count": 1}]}, "groups[0].name"),
    (
        "too many resources",
        {"groups": [{"name": "g", "count": 1, "request": {f"r{at}": 1 for at in range(17)}}]},
        "groups[0].request",
    ),
]


@pytest.mark.parametrize(("more", "field"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_it_refuses(world: World, more: dict[str, Any], field: str) -> None:
    own = {key: more.pop(key) for key in ("id",) if key in more}
    asked = reservation_request(1, **more)._replace(**own)
    found = refusal(world.ledger.reserve(asked, budget_s=1.0))
    assert (found.kind, found.field) == (RefusalKind.MALFORMED, field)
    assert world.store.writes == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StoreError("disk full"), RefusalKind.STORE),
        (KubeUnavailable("away"), RefusalKind.STORE),
        (KubeConflict("changed"), RefusalKind.CHANGED),
        (StoreFenced("another server"), RefusalKind.CHANGED),
    ],
    ids=["a full disk", "a server that is away", "a conflict", "a later writer"],
)
def test_it_refuses_when_the_store_fails_at(
    world: World, error: StoreError, kind: RefusalKind, caplog: pytest.LogCaptureFixture
) -> None:
    world.made(1, count=1)
    world.store.error = error
    for answer in (world.reserve(2, count=1), world.confirm(1), world.release(1)):
        assert refusal(answer).kind is kind
        assert refusal(answer).problem == str(error)
    for _ in range(2):
        world.ledger.tick()
    assert caplog.messages == ["reservations not updated"], "once"
    world.store.error = None
    assert world.made(2, count=1).is_held_at(world.clock.now())


def test_it_refuses_until_the_tree_is_known(world: World) -> None:
    fresh = type(world.ledger)(
        cast("ReservationObjects", world.store), now=world.clock.now, clock=world.clock.seconds
    )
    assert fresh.snapshot is None
    assert fresh.count_reserved().amounts == {}
    found = refusal(fresh.reserve(reservation_request(), budget_s=1.0))
    assert found.kind is RefusalKind.NO_TREE


def test_it_deletes_old_ended_reservations_and_frees_their_ids(world: World) -> None:
    world.made()
    world.release()
    world.clock.pass_s(RETENTION_S - 1)
    world.ledger.tick()
    assert len(world.store.rows) == 1
    world.clock.pass_s(1)
    world.ledger.tick()
    assert world.store.rows == {}
    assert world.made(count=3).is_held_at(world.clock.now())


def fill_table(world: World, number: int, holder: str, num_rows: int) -> None:
    """Give a holder copies of its n-th reservation, in the phase that it has."""
    row = next(row for row in world.ledger.read_current() if row.id == id_of(number))
    for copy in range(number * 10_000, number * 10_000 + num_rows - 1):
        world.store.rows[id_of(copy)] = replace(row, id=id_of(copy), holder=holder)


@pytest.mark.parametrize("phase", [Phase.RELEASED, Phase.EXPIRED])
def test_ended_reservations_refuse_none_and_make_room_oldest_first(phase: Phase) -> None:
    world = World(cluster(num_nodes=2, slots=10**6, per_leaf=2))
    day_s = 86_400
    world.made(1, count=1, holder="bob", ttl_s=day_s)
    world.release(1, holder="bob")
    for number in (2, 3):
        ttl_s = day_s if phase is Phase.RELEASED else 60
        world.made(number, count=1, holder="eve", ttl_s=ttl_s)
        if phase is Phase.RELEASED:
            world.release(number, holder="eve")
        world.clock.pass_s(61)
        fill_table(world, number, "eve", MAX_RESERVATIONS // 2)
    made = world.made(4, count=1, holder="bob")
    assert made.is_held_at(world.clock.now())
    assert len(world.store.rows) == MAX_RESERVATIONS
    assert id_of(1) in world.store.rows, "eve's make room, though bob's ended before"
    newest = [row for row in world.store.rows.values() if row.id == id_of(3)]
    assert newest, "of eve's, the oldest make room"
    world.store.rows |= {id_of(at): newest[0] for at in range(90_000, 90_050)}
    world.ledger.tick()
    assert len(world.store.rows) == MAX_RESERVATIONS
    assert {id_of(1), id_of(3), id_of(4)} <= world.store.rows.keys()


def test_ended_reservations_of_many_nodes_take_the_room_of_many() -> None:
    world = World(cluster(num_nodes=300, slots=2, per_leaf=10))
    pods = [{"name": name, "count": 300, "max_per_node": 1} for name in ("a", "b")]
    for number, asked in enumerate((pods, [{"name": "a", "count": 1}]), 1):
        world.made(number, groups=asked)
        world.release(number)
    large, small = (world.store.rows[id_of(number)] for number in (1, 2))
    assert sum(len(group.runs) for group in large.groups) == 600
    for at in range(10, 2000):
        world.store.rows[id_of(at)] = replace(large, id=id_of(at), holder="eve")
    for _ in range(10):
        world.ledger.tick()
    assert 1500 < len(world.store.rows) < 1700, "600 runs take the room of five"
    assert small.id in world.store.rows


RESOURCES = {f"{at:02}".ljust(250, "r"): 1 for at in range(16)}


def test_reservations_of_many_resources_take_the_room_of_many() -> None:
    groups: list[dict[str, Any]] = [{"name": "one", "count": 1}]
    groups += [{"name": str(at), "count": 1, "min": 0, "request": RESOURCES} for at in range(32)]
    world = World(cluster(num_nodes=2, slots=200, per_leaf=2))
    world.made(1, groups=groups)
    fill_table(world, 1, LOCAL_HOLDER, 40)
    world.made(2, groups=groups)
    fill_table(world, 2, LOCAL_HOLDER, 30)
    num_bytes = sum(len(repr(row.groups)) for row in world.store.rows.values())
    assert num_bytes < 32 << 20, "4,096 of them would take gigabytes"
    assert refusal(world.reserve(3, groups=groups)).kind is RefusalKind.FULL
    world.made(4, count=1, holder="bob")


def test_no_holder_takes_the_whole_table() -> None:
    world = World(cluster(num_nodes=2, slots=10**6, per_leaf=2))
    world.made(1, count=1, holder="eve", ttl_s=600)
    fill_table(world, 1, "eve", MAX_HELD // 2)
    full = refusal(world.reserve(2, count=1, holder="eve"))
    assert full.kind is RefusalKind.FULL
    assert "take 2048 places and this one 1 or more, and 2048 of 4096 are left: " in full.problem
    again = world.reserve(1, count=1, holder="eve", ttl_s=600)
    assert isinstance(again, ReservationResult), "a repeated request is still answered"
    world.made(2, count=1, holder="bob", ttl_s=600)
    fill_table(world, 2, "bob", MAX_HELD // 4)
    assert refusal(world.reserve(3, count=1, holder="bob")).kind is RefusalKind.FULL
    world.made(3, count=1, holder="carol")
    world.clock.pass_s(600)
    world.made(4, count=1, holder="eve")  # what has expired is left again


def test_it_limits_the_writes_of_one_tick() -> None:
    world = World(cluster(num_nodes=2, slots=10**6, per_leaf=2))
    for number in range(MAX_WRITES_PER_TICK + 5):
        world.made(number, count=1)
    world.clock.pass_s(61)
    world.ledger.tick()
    assert len(world.store.writes[-1]) == MAX_WRITES_PER_TICK
    world.ledger.tick()
    assert len(world.store.writes[-1]) == 5


def test_it_adopts_inherited_reservations_and_releases_late_writes(world: World) -> None:
    world.made(1, count=1)
    world.store.restart()
    late = World(cluster(**SMALL)).made(2, gang="ns/late", count=1)
    world.store.rows[late.id] = late
    world.ledger = world.open()
    world.ledger.tick()
    taken = world.store.rows[id_of(1)]
    assert (taken.phase, taken.epoch) == (Phase.RESERVED, 2)
    assert world.store.rows[late.id].phase is Phase.RELEASED
    assert "replaced" in world.store.rows[late.id].message


def test_it_writes_nothing_while_another_replica_leads(world: World) -> None:
    world.made(count=1)
    world.clock.pass_s(61)
    world.store.refusal = Refusal(RefusalKind.NOT_LEADER, "another replica leads", leader="h:1")
    world.ledger.tick()
    assert len(world.store.writes) == 1
    assert refusal(world.reserve(2)) == world.store.refusal
    assert refusal(world.confirm()).leader == "h:1"


def test_it_counts_the_reserved_amounts(world: World) -> None:
    world.made(1, gang="ns/a", count=3)
    world.made(2, gang="ns/b", count=2)
    world.confirm(2)
    census = world.ledger.count_reserved()
    assert census.phases == {Phase.RESERVED: 1, Phase.CONFIRMED: 1}
    assert census.amounts == {"slots": 5}
    world.clock.pass_s(61)
    assert world.ledger.count_reserved().phases == {Phase.EXPIRED: 1, Phase.CONFIRMED: 1}
    assert world.ledger.count_reserved().amounts == {"slots": 2}


def test_it_publishes_no_snapshot_before_reservations_are_known(world: World) -> None:
    world.store.is_known = False
    assert world.ledger.snapshot is None
    world.store.is_known = True
    assert world.ledger.snapshot is world.base


def test_it_notifies_whenever_free_nodes_change(world: World) -> None:
    notified: list[int] = []
    ledger = ReservationLedger(
        cast("ReservationObjects", world.store),
        now=world.clock.now,
        clock=world.clock.seconds,
        on_change=lambda: notified.append(len(notified)),
    )
    ledger.publish(world.base)
    ledger.tick()
    before = len(notified)
    changes: list[Callable[[], object]] = [
        lambda: ledger.reserve(reservation_request(1), budget_s=1.0),
        lambda: ledger.release(id_of(1), holder=LOCAL_HOLDER),
        lambda: ledger.reserve(reservation_request(2), budget_s=1.0),
        lambda: world.clock.pass_s(61),
    ]
    for number, change in enumerate(changes, 1):
        change()
        ledger.tick()
        assert len(notified) >= before + number
    settled = len(notified)
    ledger.tick()
    assert len(notified) == settled, "without changes there is no notification"


def test_it_logs_a_bad_reservation_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world.store.problems = ("PlacementReservation x: is odd",)
    world.ledger.tick()
    world.ledger.tick()
    world.store.problems = ()
    world.ledger.tick()
    assert caplog.messages == ["unusable reservation appeared", "unusable reservation gone"]
