"""Changes of state are logged once."""

from __future__ import annotations

import logging
from collections.abc import Hashable

import pytest

from runtime.transition_log import MAX_LINES, REFILL_S, TransitionLog


def test_it_logs_each_thing_once_and_counts_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    transitions = TransitionLog(logging.getLogger("test"), "thing", level=logging.WARNING)
    many: dict[Hashable, dict[str, object]] = {
        number: {"number": number} for number in range(MAX_LINES + 5)
    }
    transitions.update(many)
    transitions.update(many)
    transitions.update({0: {"number": 0}})
    events = [record.getMessage() for record in caplog.records]
    assert events.count("thing appeared") == events.count("thing gone") == MAX_LINES
    rest = [vars(record)["num"] for record in caplog.records if "num" in vars(record)]
    assert rest == [5, 4]
    assert {record.levelname for record in caplog.records if "appeared" in record.message} == {
        "WARNING"
    }


def test_it_logs_what_changes_all_the_time_up_to_a_rate(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now_s = 0.0
    transitions = TransitionLog(logging.getLogger("test"), "thing", clock=lambda: now_s)
    num_rounds = 3600
    for number in range(num_rounds):
        now_s = float(number)
        transitions.update(
            {
                (number, at): {"kind": "invented", "number": number, "thing": at}
                for at in range(MAX_LINES)
            }
        )
    appeared = [row for row in caplog.records if row.getMessage() == "thing appeared"]
    assert len(appeared) <= MAX_LINES + num_rounds / REFILL_S
    counts = [row for row in caplog.records if row.getMessage() == "more thing appeared"]
    assert len(counts) <= num_rounds / REFILL_S + 1
    assert sum(vars(row)["num"] for row in counts) + len(appeared) >= MAX_LINES * (num_rounds - 3)
    caplog.clear()
    transitions.update({"rare": {"kind": "rare"}})
    rare = [row for row in caplog.records if vars(row).get("kind") == "rare"]
    assert [row.getMessage() for row in rare] == ["thing appeared"]
