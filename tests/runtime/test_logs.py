"""Log lines: an event and its fields."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from runtime.logs import JsonFormatter, TextFormatter, start_logging

log = logging.getLogger("agent.test")


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_it_writes_json_lines_with_fields(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("json")
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


def test_it_escapes_untrusted_text(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("text")
    log.info("report published", extra={"reason": "a\nb \x1b[2J", "node": "n1"})
    (line,) = lines_of(capsys)
    assert line.endswith(r"Z INFO    report published reason=a\nb \x1b[2J node=n1")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_it_keeps_a_traceback_on_one_line(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    start_logging(log_format)
    try:
        int("boom")
    except ValueError:
        log.exception("round failed")
    (line,) = lines_of(capsys)
    assert "ValueError: invalid literal" in line


@pytest.mark.parametrize(
    ("level", "events"),
    [
        pytest.param(logging.INFO, ["known"], id="no details unless asked"),
        pytest.param(logging.DEBUG, ["detail", "known"], id="details when asked"),
    ],
)
def test_it_logs_from_a_level_on(
    capsys: pytest.CaptureFixture[str], level: int, events: list[str]
) -> None:
    start_logging("json", level=level)
    log.debug("detail")
    log.info("known")
    logging.getLogger("apscheduler.executors").info("every tick")
    logging.getLogger("apscheduler.scheduler").warning("skipped: in words of its own")
    assert [json.loads(line)["event"] for line in lines_of(capsys)] == events


def test_it_writes_json_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(None)
    log.info("x")
    (line,) = lines_of(capsys)
    assert json.loads(line)["event"] == "x"


def test_it_logs_each_line_once_even_if_started_twice(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("json")
    start_logging("json")
    log.info("x")
    assert len(lines_of(capsys)) == 1


def record_of(**fields: object) -> logging.LogRecord:
    record = logging.LogRecord("name", logging.INFO, "path", 1, "fabric known", None, None)
    vars(record).update(fields)
    return record


def test_it_formats_fields_as_json() -> None:
    line = json.loads(JsonFormatter().format(record_of(device="a\nb", path=Path("p"))))
    assert (line["event"], line["level"], line["device"], line["path"]) == (
        "fabric known",
        "info",
        "a\nb",
        "p",
    )
    assert line["time"].endswith("Z")


def test_it_formats_hostile_fields_on_one_line_of_text() -> None:
    line = TextFormatter().format(record_of(device="a\n\x1b[31mb"))
    assert line.endswith(r"fabric known device=a\n\x1b[31mb")


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "has_colors"),
    [(True, "", True), (True, "1", False), (False, "", False)],
    ids=["on a terminal", "with NO_COLOR", "in a pipe"],
)
def test_warnings_have_a_color_only_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_terminal: bool,
    no_color: str,
    has_colors: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    start_logging("text")
    log.warning("collector failed")
    log.info("report published")
    warning, info = lines_of(capsys)
    assert ("\x1b[33mWARNING\x1b[0m" in warning) is has_colors
    assert "\x1b" not in info
