"""Log lines: an event and its fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from runtime.logs import start_logging

log = logging.getLogger("agent.test")


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Give the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_it_writes_json_lines_with_fields(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("json", is_verbose=False)
    log.warning("collector failed", extra={"collector": "lldpd", "error": "a\nb", "duration_s": 1})
    (line,) = map(json.loads, lines_of(capsys))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "event": "collector failed",
        "logger": "agent.test",
        "collector": "lldpd",
        "error": "a\nb",
        "duration_s": 1,
    }


def test_it_writes_text_with_foreign_words_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("text", is_verbose=False)
    log.info("report published", extra={"reason": "a\nb \x1b[2J", "node": "n1"})
    (line,) = lines_of(capsys)
    assert line.endswith(r"Z INFO    report published reason=a\nb \x1b[2J node=n1")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_it_keeps_a_traceback_on_one_line(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    start_logging(log_format, is_verbose=False)
    try:
        int("boom")
    except ValueError:
        log.exception("round failed")
    (line,) = lines_of(capsys)
    assert "ValueError: invalid literal" in line


@pytest.mark.parametrize(
    ("is_verbose", "events"),
    [
        pytest.param(False, ["known"], id="no details unless asked"),
        pytest.param(True, ["detail", "known"], id="details when asked"),
    ],
)
def test_it_tells(
    capsys: pytest.CaptureFixture[str], events: list[str], *, is_verbose: bool
) -> None:
    start_logging("json", is_verbose=is_verbose)
    log.debug("detail")
    log.info("known")
    logging.getLogger("apscheduler.executors").info("every tick")
    logging.getLogger("apscheduler.scheduler").warning("skipped: in words of its own")
    assert [json.loads(line)["event"] for line in lines_of(capsys)] == events


def test_it_writes_json_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(None, is_verbose=False)
    log.info("x")
    (line,) = lines_of(capsys)
    assert json.loads(line)["event"] == "x"


def test_it_starts_once_however_often_it_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("json", is_verbose=False)
    start_logging("json", is_verbose=False)
    log.info("x")
    assert len(lines_of(capsys)) == 1
