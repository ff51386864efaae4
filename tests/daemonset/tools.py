"""The programs that check the chart, and what they are asked."""

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.repository import ROOT

CHART = ROOT / "daemonset" / "chart" / "toponaut"
NAMESPACE = "toponaut-system"
DEADLINE_S = 60


@cache
def _asked(name: str) -> "subprocess.CompletedProcess[str]":
    where = [str(ROOT / "tools/chart-tools"), "--where", name]
    return subprocess.run(where, capture_output=True, text=True, check=False)


def find_tool(name: str) -> str:
    """Return the path of the program; without it the test is skipped, in CI it fails."""
    asked = _asked(name)
    if asked.returncode == 0:
        return asked.stdout.strip()
    if os.environ.get("CI") == "true":
        pytest.fail(asked.stderr.strip())
    pytest.skip(asked.stderr.strip())


def run(argv: Sequence[object], *, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program that may leave files in one folder only, and return how it ended."""
    scratch = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    cache_home = os.environ.get("XDG_CACHE_HOME")
    kept = {"XDG_CACHE_HOME": cache_home} if cache_home else {}
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **kept, **scratch}
    return subprocess.run(
        [str(one) for one in argv],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def render(
    values: Sequence[Path] = (), *, settings: Sequence[str] = (), home: Path
) -> "subprocess.CompletedProcess[str]":
    """Render the chart with files of values and `name=value` settings."""
    given = [f"--values={file}" for file in values] + [f"--set={one}" for one in settings]
    argv = [find_tool("helm"), "template", "toponaut", CHART, f"--namespace={NAMESPACE}", *given]
    return run(argv, home=home)
