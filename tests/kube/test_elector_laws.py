"""Leadership with any mixture of lost, late and slow requests: never two leaders at once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.kube.elector import Elector, LeaseDurations, LeaseName
from generator.kube.transport import KubeRequest
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


class StallingLink(FakeLink):
    """A connection of a process that gets no processor time at some of its requests and waits."""

    def __init__(self, world: World, stalls: list[tuple[float, Fate, float]], stop: Stop) -> None:
        super().__init__(world.leases, world.spend)
        self._world, self._stalls, self._stop = world, stalls, stop
        self._wait_s = 0.0

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        """Ask as the next of the stalls says; after the last one, request a stop."""
        stall_s, fate, self._wait_s = self._stalls.pop(0) if self._stalls else (0.0, Fate.OK, 0.0)
        self._world.spend(stall_s)
        if not self._stalls:
            self._stop.set()
        self.fates = [fate]
        return super().ask(request, timeout_s=timeout_s)

    def wait(self, _low: float, _high: float) -> float:
        """Spend the time of a wait; return that nothing is left of it."""
        self._world.spend(self._wait_s)
        return 0.0


STALLS = st.sampled_from([0.0, 0.5, 4.0, 9.0, 11.0, 16.0])


@given(st.lists(st.tuples(STALLS, st.sampled_from(Fate), STALLS), max_size=30))
@settings(max_examples=examples(150))
@example([(0.0, Fate.OK, 0.0), (0.0, Fate.OK, 11.0), *[(0.0, Fate.OK, 0.0)] * 4])
def test_a_leader_that_could_not_write_for_a_moment_hears_when_it_can_again(
    stalls: list[tuple[float, Fate, float]],
) -> None:
    world, stop = World(0), Stop()
    link = StallingLink(world, stalls, stop)
    is_news = True

    def look() -> None:
        nonlocal is_news
        is_news |= not elector.is_leader

    def hear(_epoch: int) -> None:
        nonlocal is_news
        is_news = False

    def wait(low: float, high: float) -> float:
        look()
        assert not (elector.is_leader and is_news), "its writes wait for nothing"
        return link.wait(low, high)

    elector = Elector(
        link,
        LeaseName("default", "toponaut", "pod-0"),
        now=lambda: datetime(1970, 1, 1, tzinfo=UTC),
        pace=WaitContext(stop, lambda: world.time_s, wait),
        durations=TERMS,
    )
    world.look = look  # type: ignore[method-assign]
    elector.run(on_gained=hear, on_lost=look)
