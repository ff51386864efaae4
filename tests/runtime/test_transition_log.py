"""Changes of state are logged once."""

from __future__ import annotations

import logging
from collections.abc import Hashable

import pytest

from runtime.transition_log import MAX_LINES, TransitionLog


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
