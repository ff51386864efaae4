"""One of two sweepers falls silent: what it saw last stays a witness against the other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generator.server.sweep_rounds import FIRST, FORGED, SECOND, THIRD, Sweeps


@pytest.fixture
def sweeps(tmp_path: Path) -> Sweeps:
    return Sweeps(tmp_path)


def pair_alone(root: Path) -> Sweeps:
    """Return a subnet that only two nodes can sweep."""
    return Sweeps(root, [FIRST, SECOND])


def delete(sweeps: Sweeps, node: str) -> None:
    """Delete a node's reports, as when its Node is deleted."""
    sweeps.withdraw(node)
    (sweeps.store.reports / f"{node}.yaml").unlink()


@pytest.mark.parametrize("liar", [FIRST, SECOND])
@pytest.mark.parametrize("lies_first", [True, False], ids=["lies before", "lies after"])
def test_a_liar_moves_nobody_once_the_honest_sweeper_is_silent(
    sweeps: Sweeps, liar: str, *, lies_first: bool
) -> None:
    before = sweeps.settle()
    honest = SECOND if liar == FIRST else FIRST
    for is_lie in (lies_first, not lies_first):
        if is_lie:
            sweeps.sweep(liar, FORGED)
        else:
            sweeps.silence(honest)
        sweeps.tick(3)
    assert sweeps.files() == before
    assert set(sweeps.roles) == {liar, THIRD}
    assert sweeps.blocked in {"SweepsDisagree", "SweepUnconfirmed"}
    assert honest in sweeps.message
    sweeps.restart()
    sweeps.tick(3)
    assert sweeps.files() == before


@pytest.mark.parametrize("liar", [FIRST, SECOND])
def test_the_third_sweeper_keeps_the_hold_if_it_sees_what_the_silent_one_saw(
    sweeps: Sweeps, liar: str
) -> None:
    before = sweeps.settle()
    honest = SECOND if liar == FIRST else FIRST
    sweeps.sweep(liar, FORGED)
    sweeps.silence(honest)
    sweeps.tick(3)
    sweeps.sweep(THIRD)
    sweeps.tick(3)
    assert sweeps.files() == before
    sweeps.silence(THIRD)
    sweeps.withdraw(honest)
    sweeps.tick(3)
    assert sweeps.files() == before


@pytest.mark.parametrize("silent", [FIRST, SECOND])
def test_a_real_change_is_written_as_soon_as_a_second_sweeper_confirms_it(
    sweeps: Sweeps, silent: str
) -> None:
    before = sweeps.settle()
    left = SECOND if silent == FIRST else FIRST
    sweeps.silence(silent)
    sweeps.tick(3)
    sweeps.sweep(left, FORGED)
    sweeps.tick(3)
    assert sweeps.files() == before
    sweeps.sweep(THIRD, FORGED)
    sweeps.tick(3)
    assert sweeps.files() != before
    assert sweeps.blocked == ""
    assert "sweeps-disagree" not in sweeps.findings


def test_a_sweeper_that_is_replaced_while_nothing_changes_holds_nothing(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    sweeps.silence(SECOND)
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.findings, sweeps.blocked) == (before, {"stale-report"}, "")
    sweeps.sweep(THIRD)
    sweeps.tick(3)
    delete(sweeps, SECOND)
    sweeps.tick(3)
    sweeps.sweep(FIRST, FORGED)
    sweeps.sweep(THIRD, FORGED)
    sweeps.tick(3)
    assert sweeps.files() != before, "a third sweeper replaces the witness"


def test_the_silent_sweeper_is_no_witness_once_a_person_lists_the_others(tmp_path: Path) -> None:
    sweeps = pair_alone(tmp_path)
    before = sweeps.settle()
    sweeps.silence(SECOND)
    sweeps.sweep(FIRST, FORGED)
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.blocked) == (before, "SweepsDisagree")
    document = sweeps.store.read_fabric()
    assert document is not None
    sweeps.store.write_fabric(document | {"spec": {"sweepers": [FIRST]}})
    sweeps.tick(3)
    assert sweeps.files() != before


@pytest.mark.parametrize("is_listed", [False, True], ids=["elected", "listed"])
def test_a_lie_that_is_held_stays_held_when_the_witness_is_deleted(
    tmp_path: Path, *, is_listed: bool
) -> None:
    sweeps = pair_alone(tmp_path)
    if is_listed:
        sweeps.tick()
        document = sweeps.store.read_fabric() or {}
        sweeps.store.write_fabric(document | {"spec": {"sweepers": [FIRST, SECOND]}})
    before = sweeps.settle()
    sweeps.sweep(FIRST, FORGED)
    sweeps.tick(2)
    delete(sweeps, SECOND)
    for _ in range(2):
        sweeps.tick(3)
        assert (sweeps.files(), sweeps.blocked) == (before, "SweepUnconfirmed")
        assert SECOND in sweeps.message
        sweeps.restart()


def test_a_node_that_is_left_alone_in_peace_sweeps_alone(tmp_path: Path) -> None:
    sweeps = pair_alone(tmp_path)
    before = sweeps.settle()
    delete(sweeps, SECOND)
    sweeps.tick(3)
    sweeps.sweep(FIRST, FORGED)
    sweeps.tick(3)
    assert sweeps.files() != before, "nobody is left who could confirm it"


def test_a_disagreement_before_the_first_tree_outlasts_the_silence_as_well(
    tmp_path: Path,
) -> None:
    sweeps = pair_alone(tmp_path)
    sweeps.tick()
    sweeps.sweep(FIRST, FORGED)
    sweeps.sweep(SECOND)
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.blocked) == ({}, "SweepsDisagree")
    sweeps.silence(SECOND)
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.blocked) == ({}, "SweepsDisagree")


def test_a_spare_whose_sweep_is_cut_stays_a_witness(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    (file,) = sweeps.store.reports.glob(f"{SECOND}.sweep.*")
    text = file.read_text().replace('"of":1', '"of":2').replace('"of": 1', '"of": 2')
    file.write_text(text)
    sweeps.sweep(FIRST, FORGED)
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.blocked) == (before, "SweepUnconfirmed")
