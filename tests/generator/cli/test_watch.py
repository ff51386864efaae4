"""`--watch` as a user runs it: a process, a folder that changes, and Ctrl-C."""

import signal
import subprocess  # noqa: TID251 - a watch ends by a signal
import sys
from pathlib import Path

import pytest

from tests.generator.scenes import PAIRS, Scene
from tests.lab.wait import wait_until

pytestmark = pytest.mark.timeout(120)

DEADLINE_S = 60


@pytest.mark.parametrize(
    ("words", "before"),
    [
        pytest.param(
            ("tree", "--reports", "{store}/neighborreports", "-o", "name"),
            "leaf",
            id="a tree, and then the error that there is none",
        ),
        pytest.param(("plan", "--store", "{store}"), "create", id="a plan, and then none"),
    ],
)
def test_it_prints_again_what_changed_until_ctrl_c(
    words: tuple[str, ...], before: str, tmp_path: Path
) -> None:
    store = Scene.of(tmp_path, PAIRS).store()
    argv = [word.format(store=store) for word in words]
    log = tmp_path / "log"

    def wait_for(text: str) -> None:
        wait_until(
            lambda: "" if text in log.read_text() else f"only {log.read_text()!r}",
            deadline_s=DEADLINE_S,
            what=text,
        )

    with log.open("wb") as output:
        program = subprocess.Popen(
            [sys.executable, "-m", "generator", *argv, "--watch", "--interval", "100ms"],
            stdout=output,
            stderr=output,
        )
        try:
            wait_for(before)
            for report in list((store / "neighborreports").iterdir()):
                report.unlink()
            wait_for("no usable input")
        finally:
            program.send_signal(signal.SIGINT)
            code = program.wait(DEADLINE_S)
    assert code == 130
    assert log.read_text().splitlines()[-1].startswith("interrupted by SIGINT")
    assert "Traceback" not in log.read_text()
