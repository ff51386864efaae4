"""Leadership with any mixture of lost, late and slow requests: never two leaders at once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.kube.elector import Elector, LeaseDurations, LeaseName
from runtime.retry import WaitContext
from runtime.stop import Stop
from tests.effort import examples
from tests.kube.leases import FakeLeases, FakeLink, Fate

TERMS = LeaseDurations(lease_s=15, renew_s=10, retry_s=2)


@dataclass
class World:
    """Some candidates around one lease, on one clock."""

    count: int
    time_s: float = 1000.0
    leases: FakeLeases = field(default_factory=FakeLeases)
    reigns: list[tuple[int, int]] = field(default_factory=list)
    """(candidate, epoch) of each observed leader, without repetitions."""

    def __post_init__(self) -> None:
        self.links = [FakeLink(self.leases, self.spend) for _ in range(self.count)]
        pace = WaitContext(Stop(), lambda: self.time_s, lambda low, _high: low)
        self.candidates = [
            Elector(
                link,
                LeaseName("default", "toponaut", f"pod-{at}"),
                now=lambda: datetime(1970, 1, 1, tzinfo=UTC),
                pace=pace,
                durations=TERMS,
            )
            for at, link in enumerate(self.links)
        ]

    def spend(self, seconds: float) -> None:
        """Let time pass, and record the leader at every moment."""
        end = self.time_s + seconds
        while self.time_s < end:
            self.time_s = min(end, self.time_s + 0.5)
            self.look()

    def look(self) -> None:
        leaders = [at for at, one in enumerate(self.candidates) if one.is_leader]
        assert len(leaders) <= 1, f"{leaders} lead at {self.time_s}"
        for at in leaders:
            reign = (at, self.candidates[at].epoch)
            if self.reigns[-1:] != [reign]:
                self.reigns.append(reign)

    def advance(self, at: int, *fates: Fate) -> None:
        self.links[at].fates = list(fates)
        self.candidates[at].advance()
        self.links[at].fates = []
        self.look()


STEPS = st.tuples(
    st.integers(0, 2),
    st.lists(st.sampled_from(Fate), max_size=3),
    st.sampled_from([0.0, 0.5, 2.0, 4.0, 9.0, 16.0]),
    st.sampled_from(["advance"] * 8 + ["release", "arrive"]),
)


@given(st.lists(STEPS, max_size=40), st.floats(0, 0.99))
@settings(max_examples=examples(150))
def test_it_never_lets_two_lead(
    steps: list[tuple[int, list[Fate], float, str]], share: float
) -> None:
    world = World(3)
    for link in world.links:
        link.share = share
    for at, fates, rest_s, what in steps:
        match what:
            case "release":
                world.candidates[at].release()
            case "arrive":
                world.leases.do_late_writes()
            case _:
                world.advance(at, *fates)
        world.look()
        world.spend(rest_s)
    epochs = [epoch for _, epoch in world.reigns]
    assert epochs == sorted(epochs)
    holders = {epoch: {at for at, one in world.reigns if one == epoch} for epoch in epochs}
    assert all(len(one) == 1 for one in holders.values()), "an epoch has one leader"


def test_it_leads_at_once_without_another_leader() -> None:
    world = World(2)
    world.advance(0)
    world.advance(1)
    assert world.reigns == [(0, 0)]


def test_it_takes_over_when_the_lease_has_expired() -> None:
    world = World(2)
    world.advance(0)
    world.advance(1)
    world.spend(14.5)
    world.advance(1)
    assert world.reigns == [(0, 0)]
    world.spend(1)
    world.advance(1)
    assert world.reigns == [(0, 0), (1, 1)]


def test_it_takes_a_released_lease_at_once() -> None:
    world = World(2)
    world.advance(0)
    world.candidates[0].release()
    assert world.leases.stored is not None
    assert world.leases.stored["spec"]["holderIdentity"] == ""
    world.advance(1)
    assert world.reigns == [(0, 0), (1, 1)]


def test_it_keeps_leading_when_the_answer_to_a_renewal_is_lost() -> None:
    world = World(2)
    world.advance(0)
    world.spend(1)
    world.advance(0, Fate.UNHEARD)
    world.advance(0)
    world.spend(9)
    assert world.candidates[0].is_leader
    assert world.reigns == [(0, 0)]


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.LATE])
def test_it_stops_before_the_others_may_begin(fate: Fate) -> None:
    world = World(2)
    world.advance(0)
    world.advance(1)
    since = world.time_s
    while world.candidates[0].is_leader:
        world.advance(0, fate)
    assert world.time_s - since <= TERMS.renew_s + 0.1
    world.advance(1)
    assert not world.candidates[1].is_leader


def test_it_stops_leading_at_once_when_another_holder_was_set() -> None:
    world = World(2)
    world.advance(0)
    assert world.leases.stored is not None
    world.leases.stored["spec"]["holderIdentity"] = "an-administrator"
    world.leases.stored["metadata"]["resourceVersion"] = "77"
    world.advance(0)
    assert not world.candidates[0].is_leader


@pytest.mark.parametrize("who", [0, 1])
def test_it_respects_a_deleted_lease_until_it_expires(who: int) -> None:
    world = World(2)
    world.advance(0)
    world.advance(1)
    world.leases.stored = None
    world.advance(who)
    world.spend(1)
    assert world.candidates[0].is_leader
    for _ in range(40):
        world.spend(1)
        world.advance(1)
    assert world.reigns == [(0, 0), (1, 1)]


def test_it_caps_the_duration_of_another_holder() -> None:
    world = World(1)
    world.leases.stored = {
        "metadata": {"resourceVersion": "1"},
        "spec": {"holderIdentity": "x", "leaseDurationSeconds": 10**9, "leaseTransitions": 4},
    }
    world.advance(0)
    world.spend(601)
    world.advance(0)
    assert world.reigns == [(0, 5)]
