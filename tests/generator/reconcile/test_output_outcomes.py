"""What the status, the condition and the findings say of outputs."""

import pytest

from generator.objects.outputs import OutputType
from generator.reconcile.output_outcomes import OutputOutcome, OutputsOutcome, RefusedWrite

TAKEN = RefusedWrite("node-1", "409 conflict", is_conflict=True)
REFUSED = RefusedWrite("node-2", "422 invalid", is_conflict=False)
LABELS = OutputOutcome(OutputType.LABELS, num_current=3)


@pytest.mark.parametrize(
    ("outcome", "state", "message"),
    [
        pytest.param(LABELS, "Written", "", id="all objects agree"),
        pytest.param(LABELS._replace(num_pending=2), "Pending", "", id="some are to be written"),
        pytest.param(
            LABELS._replace(deferred=("node-1",)),
            "Pending",
            "labels wait until the gangs on node-1 have ended",
            id="some wait for gangs",
        ),
        pytest.param(
            LABELS._replace(refusals=(REFUSED, TAKEN)),
            "Conflict",
            "not written: node-2 and 1 more: 422 invalid",
            id="a conflict comes before a refusal",
        ),
        pytest.param(
            LABELS._replace(refusals=(REFUSED,)),
            "Refused",
            "not written: node-2: 422 invalid",
            id="the server refuses one",
        ),
        pytest.param(
            LABELS._replace(problem="no CRD", is_served=False), "NotServed", "no CRD", id="no kind"
        ),
        pytest.param(
            LABELS._replace(problem="not listed", is_known=False),
            "Unknown",
            "not listed",
            id="the objects are not known",
        ),
    ],
)
def test_it_reports_the_state_of_an_output(
    outcome: OutputOutcome, state: str, message: str
) -> None:
    found = OutputsOutcome((outcome,))
    (row,) = found.rows
    assert (row.state, row.message) == (state, message)
    condition = found.condition
    assert condition is not None
    assert condition.is_true is (state == "Written")
    assert condition.reason == ("AllWritten" if state == "Written" else state)


def test_a_removed_output_is_reported_until_nothing_is_left_of_it() -> None:
    gone = OutputOutcome(OutputType.KAI, is_removal=True)
    assert OutputsOutcome((gone,)).rows == ()
    assert OutputsOutcome((gone,)).condition is None
    assert OutputsOutcome((gone._replace(is_served=False),)).rows == ()
    (row,) = OutputsOutcome((gone._replace(num_pending=1),)).rows
    assert (row.state, row.message) == ("Pending", "is removed")
    (row,) = OutputsOutcome((gone._replace(is_known=False),)).rows
    assert row.state == "Unknown"


def test_findings_name_the_objects_that_are_not_written_up_to_a_bound() -> None:
    refusals = tuple(REFUSED._replace(key=f"node-{at}") for at in range(500))
    found = OutputsOutcome((LABELS._replace(refusals=refusals),)).findings
    assert len(found) == 20
    assert (found[0].kind, found[0].device) == ("output-refused", "node-0")
    assert "422 invalid" in found[0].message
    assert OutputsOutcome((LABELS._replace(problem="x", is_known=False),)).findings == ()


def test_a_pause_is_the_reason_while_something_is_left_to_write() -> None:
    pending = LABELS._replace(num_pending=1)
    condition = OutputsOutcome((pending,), is_paused=True).condition
    assert condition is not None
    assert (condition.is_true, condition.reason) == (False, "Paused")
    condition = OutputsOutcome((LABELS,), is_paused=True).condition
    assert condition is not None
    assert condition.is_true
