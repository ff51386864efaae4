"""The result of the HyperNodes as an output: agreed, left, in conflict, refused, removed."""

from dataclasses import replace
from typing import Final

import pytest

from generator.objects.outputs import OutputState
from generator.outputs.hypernode.forest import build_hypernode_tree, render_hypernodes
from generator.reconcile.hypernode_output import compare_hypernodes
from generator.reconcile.hypernode_plan import plan_changes
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.writer import ApplyResult
from generator.store.object_store import ForeignObject
from tests.generator.reconcile.cluster import hypernode
from topology.model.errors import KubeFenced, TopologyError, WriteError

TREE: Final = build_hypernode_tree(
    [
        hypernode("leaf-1", 1, "n1", "n2"),
        hypernode("leaf-2", 1, "n3", "n4"),
        hypernode("spine-1", 2, "leaf-1", "leaf-2"),
    ]
).tree
WRITTEN: Final = render_hypernodes(TREE)
PLAN: Final = plan_changes(WRITTEN, ())
NOTHING: Final = ApplyResult(())


def test_all_that_was_written_in_the_round_agrees() -> None:
    found = compare_hypernodes(TREE, (), ApplyResult(PLAN))
    assert (found.state, found.num_current, found.num_written) == (OutputState.WRITTEN, 3, 3)
    assert compare_hypernodes(TREE, WRITTEN, NOTHING) == found._replace(num_written=0)


def test_what_is_left_after_a_stop_is_pending() -> None:
    found = compare_hypernodes(TREE, (), ApplyResult(PLAN[:1], PLAN[1:], KubeFenced("the lease")))
    assert (found.state, found.num_current, found.num_pending) == (OutputState.PENDING, 1, 2)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        pytest.param(WriteError("422"), OutputState.REFUSED, id="the server refuses one"),
        pytest.param(ForeignObject("of another"), OutputState.CONFLICT, id="another owns it"),
    ],
)
def test_the_write_that_failed_is_named(error: TopologyError, state: OutputState) -> None:
    found = compare_hypernodes(TREE, (), ApplyResult(PLAN[:1], PLAN[1:], error))
    assert (found.state, found.num_current, found.num_pending) == (state, 1, 1)
    (row,) = OutputsOutcome((found,)).rows
    assert row.message == f"not written: {PLAN[1].name}: {error}"


def test_a_name_of_another_owner_is_a_conflict_and_a_finding() -> None:
    theirs = replace(WRITTEN[0], labels=())
    outcome = OutputsOutcome((compare_hypernodes(TREE, (theirs, *WRITTEN[1:]), NOTHING),))
    (row,) = outcome.rows
    assert (row.state, row.refused, row.objects) == (OutputState.CONFLICT, 1, 1)
    assert "has the same name" in row.message
    (finding,) = outcome.findings
    assert finding.device == theirs.name


def test_a_deleted_one_that_a_finalizer_keeps_says_what_to_do() -> None:
    kept = replace(WRITTEN[0], finalizers=("example.com/keep",))
    outcome = OutputsOutcome((compare_hypernodes(TREE, (kept, *WRITTEN[1:]), NOTHING),))
    (finding,) = outcome.findings
    assert "is kept by example.com/keep" in finding.message
    assert "Find out who deleted it" in finding.message


def test_without_a_decided_tree_and_without_the_kind_the_state_says_so() -> None:
    assert compare_hypernodes(None, (), NOTHING).state is OutputState.UNKNOWN
    found = compare_hypernodes(TREE, (), NOTHING, is_served=False)
    assert found.state is OutputState.NOT_SERVED


def test_unwanted_ones_have_a_row_until_the_last_is_removed() -> None:
    found = compare_hypernodes(TREE, WRITTEN, NOTHING, is_wanted=False)
    (row,) = OutputsOutcome((found,)).rows
    assert (row.state, row.pending, row.message) == (OutputState.PENDING, 3, "is removed")
    done = ApplyResult(plan_changes((), WRITTEN))
    gone = compare_hypernodes(TREE, WRITTEN, done, is_wanted=False)
    missing = compare_hypernodes(TREE, (), NOTHING, is_wanted=False, is_served=False)
    both = OutputsOutcome((gone, missing))
    assert (both.rows, both.findings) == ((), ())
