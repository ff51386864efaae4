"""Steps: which are allowed, which callers may make them, and how long an end is kept."""

from datetime import timedelta
from itertools import product

import pytest

from generator.objects.reservation import ReservationPhase as Phase
from generator.placement.answer import Placement
from generator.reservations.phases import (
    RETENTION_S,
    STEPS,
    Step,
    apply_step,
    build_reservation,
    expire_if_due,
    is_forgettable,
)
from generator.reservations.records import Refusal, RefusalKind, Reservation
from tests.generator.reservations.worlds import NOON, World, reservation_request

LATER = NOON + timedelta(seconds=10)


@pytest.fixture
def made() -> Reservation:
    return World().made()


@pytest.mark.parametrize(("phase", "step"), list(product(Phase, Step)), ids=str)
def test_it_makes_only_the_steps_of_the_table(made: Reservation, phase: Phase, step: Step) -> None:
    at = made if phase is Phase.RESERVED else _in(made, phase)
    after = apply_step(at, step, now=LATER, epoch=7, message="why")
    to = STEPS.get((phase, step))
    if to is None:
        assert isinstance(after, Refusal)
        assert after.kind is RefusalKind.ENDED
        assert phase.value in after.problem
        return
    assert isinstance(after, Reservation)
    assert after.phase is to
    assert (after is at) is (to is phase)
    if to is not phase:
        assert (after.epoch, after.message) == (7, "why")
        assert after.ended_at == (LATER if after.is_ended else None)
        has_no_end = Phase.CONFIRMED in (to, phase)
        assert (after.expires_at is None) is has_no_end


def _in(made: Reservation, phase: Phase) -> Reservation:
    step = {"confirmed": Step.CONFIRM, "released": Step.RELEASE, "expired": Step.EXPIRE}[phase]
    found = apply_step(made, step, now=NOON, epoch=1)
    assert isinstance(found, Reservation)
    return found


def test_it_expires_at_its_time_even_if_not_written(made: Reservation) -> None:
    ends = NOON + timedelta(seconds=60)
    assert made.expires_at == ends
    assert made.is_held_at(ends - timedelta(microseconds=1))
    assert not made.is_held_at(ends)
    after = expire_if_due(made, now=ends, epoch=2)
    assert (after.phase, after.ended_at) == (Phase.EXPIRED, ends)
    refusal = apply_step(made, Step.CONFIRM, now=ends, epoch=2)
    assert isinstance(refusal, Refusal)
    assert "is expired" in refusal.problem


def test_it_holds_a_confirmed_reservation_forever() -> None:
    world = World()
    world.made()
    assert isinstance(world.confirm(), Reservation)
    world.clock.pass_s(10**8)
    (current,) = world.ledger.read_current()
    assert current.phase is Phase.CONFIRMED


def test_it_keeps_an_ended_reservation_for_its_ttl_at_least(made: Reservation) -> None:
    gone = _in(made, Phase.RELEASED)
    assert not is_forgettable(gone, NOON + timedelta(seconds=RETENTION_S - 1))
    assert is_forgettable(gone, NOON + timedelta(seconds=RETENTION_S))
    world = World()
    long = _in(world.made(ttl_s=5000), Phase.RELEASED)
    assert not is_forgettable(long, NOON + timedelta(seconds=4999))
    assert not is_forgettable(made, NOON + timedelta(days=9)), "its end is not written yet"


@pytest.mark.parametrize("call", ["confirm", "release"])
def test_it_refuses_other_holders(call: str) -> None:
    world = World()
    world.made(holder="alice")
    refusal = getattr(world, call)(holder="bob")
    assert refusal.kind is RefusalKind.NOT_HOLDER
    assert world.ledger.read_current()[0].phase is Phase.RESERVED
    assert isinstance(getattr(world, call)(holder="alice"), Reservation)


def test_it_accepts_a_repeated_step() -> None:
    world = World()
    world.made()
    assert world.confirm() == world.confirm()
    assert world.release() == world.release()
    assert [len(written) for written in world.store.writes] == [1, 1, 1], (
        "unchanged reservations are not written"
    )


NAMES = [f"node-{at:06}.{'x' * 200}" for at in range(5000)]


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        pytest.param([["n1"] * 10**6], "bytes to send", id="a million pods"),
        pytest.param(
            [["n1", "n2"] * 5000], "needs 10000 runs of nodes", id="a group that alternates"
        ),
        pytest.param([NAMES] * 2, "bytes to store", id="long names of many nodes"),
    ],
)
def test_it_refuses_a_node_list_that_is_too_large(groups: list[list[str]], why: str) -> None:
    rows = [{"name": f"g{at}", "count": len(nodes)} for at, nodes in enumerate(groups)]
    placement = Placement(
        is_feasible=True,
        assignment={f"g{at}": tuple(nodes) for at, nodes in enumerate(groups)},
        tier="leaf",
        objective={},
        is_proved=True,
    )
    found = build_reservation(reservation_request(groups=rows), placement, now=NOON, epoch=1)
    assert isinstance(found, Refusal)
    assert (found.kind, found.field) == (RefusalKind.MALFORMED, "groups")
    assert why in found.problem
