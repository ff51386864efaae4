"""What the labs need of the machine, and what happens where it is missing."""

import os
import shutil

import pytest

ENABLE = "make lab-deps"
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def require_tools(*commands: str, is_root_needed: bool = False) -> None:
    """Skip the test, naming the command that enables it; fail instead where CI=true.

    In CI a skipped lab would look like a passed one.
    """
    missing = [command for command in commands if shutil.which(command, path=_PATH) is None]
    problems = [f"needs {', '.join(missing)}: run {ENABLE}"] if missing else []
    if is_root_needed and os.geteuid() != 0:
        problems.append(f"needs root: run {ENABLE} and make test as root")
    if not problems:
        return
    if os.environ.get("CI") == "true":
        pytest.fail("; ".join(problems))
    pytest.skip("; ".join(problems))
