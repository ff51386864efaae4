"""A sandbox ends the processes that match a pattern while others start and end beside them."""

from pathlib import Path

import pytest

from tests.lab.sandbox import Sandbox
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]

HOST = "host1"
NAMES = 'for pid in $(ip netns pids "$1"); do cat "/proc/$pid/comm" 2>/dev/null; done; true'
COME_AND_GO = "while :; do true & true & wait; done"


def test_it_kills_by_name_while_others_come_and_go(tmp_path: Path) -> None:
    require_tools("unshare", "nsenter", "ip", is_root_needed=True)
    with Sandbox() as sandbox:

        def running() -> set[str]:
            return set(sandbox.run("sh", "-c", NAMES, "sh", HOST).split())

        sandbox.run("ip", "netns", "add", HOST)
        sandbox.start("sh", "-c", COME_AND_GO, namespace=HOST, log=tmp_path / "log")
        for _ in range(20):
            sandbox.start("sleep", "60", namespace=HOST, log=tmp_path / "log")
            wait_until(
                lambda: None if "sleep" in running() else running(), deadline_s=10, what="it sleeps"
            )
            sandbox.kill("sle*", namespace=HOST)
            wait_until(
                lambda: running() if "sleep" in running() else None, deadline_s=10, what="it ended"
            )
        assert "sh" in running()
