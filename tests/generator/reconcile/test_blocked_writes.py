"""How long refused and repeated writes wait."""

from generator.reconcile.output_outcomes import RefusedWrite
from generator.reconcile.write_delays import MAX_RETRY_S, RETRY_S, BlockedWrites, WriteKey

KEY = WriteKey("nodes", "toponaut-labels", "node-1")
REFUSED = RefusedWrite("node-1", "no", is_conflict=False)


def test_a_refused_write_waits_longer_each_time_but_not_if_something_else_is_desired() -> None:
    limits, now_s, wait_s = BlockedWrites(), 0.0, RETRY_S
    for _ in range(8):
        limits.record_refusal(KEY, "a", REFUSED, now_s)
        assert limits.find_refusal(KEY, "b", now_s) is None
        assert limits.find_refusal(KEY, "a", now_s + wait_s - 1) == REFUSED
        now_s += wait_s
        assert limits.find_refusal(KEY, "a", now_s) is None
        wait_s = min(2 * wait_s, MAX_RETRY_S)
    limits.record_write(KEY, "a", now_s)
    assert limits.find_refusal(KEY, "a", now_s) is None


def test_an_edited_object_is_restored_at_once_and_then_less_often() -> None:
    limits = BlockedWrites()
    limits.record_write(KEY, "a", 0.0)
    assert limits.has_written(KEY)
    assert limits.compute_wait_s(KEY, "a", 0.0) == 0
    waits = []
    for now_s in (1.0, 20.0, 60.0):
        limits.record_write(KEY, "a", now_s)
        waits.append(limits.compute_wait_s(KEY, "a", now_s))
    assert waits == [5.0, 10.0, 20.0]
    assert limits.compute_wait_s(KEY, "b", 60.0) == 0, "a new value is no repetition"
    assert limits.compute_wait_s(KEY, None, 60.0) == 0, "neither is a removal"


def test_refusals_of_writes_that_are_no_longer_planned_are_forgotten() -> None:
    limits = BlockedWrites()
    limits.record_refusal(KEY, None, REFUSED, 0.0)
    limits.keep({KEY})
    assert limits.find_refusal(KEY, None, 1.0) == REFUSED
    limits.keep(set())
    assert limits.find_refusal(KEY, None, 1.0) is None
