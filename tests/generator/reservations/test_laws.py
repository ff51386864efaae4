"""Laws for any order of calls, waits and restarts, in a folder."""

from collections import Counter
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from generator.objects.reservation import ReservationPhase as Phase
from generator.placement.cluster.snapshot import Snapshot
from generator.reservations.ledger import ReservationLedger
from generator.reservations.records import LOCAL_HOLDER, Refusal, Reservation, ReservationResult
from tests.effort import examples
from tests.generator.reservations.test_objects import open_store
from tests.generator.reservations.worlds import PLENTY_S, Clock, cluster, id_of, reservation_request

NUMBERS = st.integers(0, 5)
SLOTS, NODES = 3, 4


class Histories(RuleBasedStateMachine):
    """Calls in any order; remembers each answer and compares it with later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(prefix="reservations-"))
        self.clock = Clock()
        self.base = cluster(num_nodes=NODES, slots=SLOTS, per_leaf=2)
        self.answered: dict[int, ReservationResult] = {}
        self.ended: set[int] = set()
        self.store = open_store(self.folder)
        self.ledger = self._ledger()

    def _ledger(self) -> ReservationLedger:
        made = ReservationLedger(self.store, now=self.clock.now, clock=self.clock.seconds)
        made.publish(self.base)
        return made

    @rule(number=NUMBERS, count=st.integers(1, 6), priority=st.integers(0, 2))
    def reserve(self, number: int, count: int, priority: int) -> None:
        asked = reservation_request(number, gang=f"g{number % 3}", count=count, priority=priority)
        before = self._free()
        answer = self.ledger.reserve(asked, budget_s=PLENTY_S)
        earlier = self.answered.get(number)
        if earlier is not None:
            if isinstance(answer, ReservationResult):
                assert answer.placement == earlier.placement
            return
        if isinstance(answer, ReservationResult) and answer.reservation is not None:
            self.answered[number] = answer
        else:
            assert self._free() == before, "a refused request reserves nothing"

    @rule(number=NUMBERS)
    def confirm(self, number: int) -> None:
        answer = self.ledger.confirm(id_of(number), holder=LOCAL_HOLDER)
        if number in self.ended or number not in self.answered:
            assert isinstance(answer, Refusal)
        elif isinstance(answer, Reservation):
            assert answer.phase is Phase.CONFIRMED

    @rule(number=NUMBERS)
    def release(self, number: int) -> None:
        answer = self.ledger.release(id_of(number), holder=LOCAL_HOLDER)
        assert isinstance(answer, Reservation) is (number in self.answered)
        if isinstance(answer, Reservation):
            assert answer.is_ended
            self.ended.add(number)

    @rule(seconds=st.integers(1, 45))
    def wait(self, seconds: int) -> None:
        self.clock.pass_s(seconds)

    @rule()
    def tick(self) -> None:
        self.ledger.tick()

    @precondition(lambda self: self.answered)
    @rule()
    def restart(self) -> None:
        before = self.ledger.read_current()
        self.store = open_store(self.folder)
        self.ledger = self._ledger()
        assert self.ledger.read_current() == before

    @invariant()
    def it_never_reserves_a_slot_twice(self) -> None:
        held = [
            reservation for reservation in self.ledger.read_current() if not reservation.is_ended
        ]
        taken = Counter[str]()
        for reservation in held:
            for group in reservation.groups:
                for run in group.runs:
                    if run.node is not None:
                        taken[run.node] += run.count * dict(group.request)["slots"]
        assert all(num <= SLOTS for num in taken.values()), taken

    @invariant()
    def it_is_empty_after_all_reservations_ended(self) -> None:
        if all(reservation.is_ended for reservation in self.ledger.read_current()):
            assert self._free() == self.base.free.tolist()
            snapshot = self.ledger.snapshot
            assert snapshot is not None
            assert not snapshot.nominated

    def _free(self) -> list[list[int]]:
        """Return the free capacity for a gang that every reservation binds."""
        snapshot: Snapshot | None = self.ledger.snapshot
        assert snapshot is not None
        free = snapshot.free.copy()
        for gang in snapshot.nominated.values():
            for row in gang.pods:
                free[0, snapshot.position_of[row.node]] -= row.count
        left: list[list[int]] = free.tolist()
        return left

    def teardown(self) -> None:
        rmtree(self.folder)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=examples(15), stateful_step_count=25, deadline=None)
