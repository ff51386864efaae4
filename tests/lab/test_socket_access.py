"""Why a socket refuses a connection: its folder, its group, its mode, or a security module."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from agent.collectors import lldpd
from agent.node.command import Runner, command_env
from agent.node.unix_sockets import explain_denial
from tests.agent.nodes import settings_for
from tests.lab.tools import require_tools
from topology.model.errors import CollectError

pytestmark = pytest.mark.lab
USER: Final = 65532
GROUP: Final = 112


@pytest.fixture
def listener() -> Iterator[Path]:
    """A socket of a daemon of the group 112, in a folder of its own."""
    require_tools(is_root_needed=True)
    # The folders of pytest are closed to other users.
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as daemon:
        Path(folder).chmod(0o755)
        file = Path(folder) / "lldpd.socket"
        daemon.bind(str(file))
        daemon.listen()
        os.chown(file, 0, GROUP)
        file.chmod(0o660)
        yield file


def ask(file: Path, *groups: int, way: Callable[[Path], str] | None = None) -> str:
    """Return what a process of these groups is told when it connects."""
    with get_context("spawn").Pool(1, become, (groups,)) as pool:
        return pool.apply_async(way or connect, (file,)).get(timeout=60)


def become(groups: Sequence[int]) -> None:
    os.setgroups(groups)
    os.setgid(USER)
    os.setuid(USER)


def connect(file: Path) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(file))
        except PermissionError:
            return explain_denial(file)
    return "connected"


def collect(file: Path) -> str:
    program = str(file.with_name("lldpcli"))
    settings = settings_for(Path("/nowhere"), lldpd_socket=str(file), lldpcli=program)
    try:
        lldpd.collect(settings, Runner(command_env(os.environ)))
    except CollectError as error:
        return f"{type(error).__name__}: {error}"
    return "collected"


def test_the_collector_says_so_after_the_message_of_lldpcli(listener: Path) -> None:
    require_tools("lldpcli")
    # Debian lets only the group adm run its own.
    program = shutil.which("lldpcli", path="/usr/sbin:/usr/bin") or ""
    shutil.copyfile(program, listener.with_name("lldpcli"))
    listener.with_name("lldpcli").chmod(0o755)
    said = ask(listener, 105, way=collect)
    assert "lldpcli: exit 1: unable to connect to socket" in said
    assert f"belongs to group {GROUP}" in said


def test_it_names_the_group_of_the_socket(listener: Path) -> None:
    said = ask(listener, 105)
    assert f"{listener} belongs to group {GROUP}" in said
    assert f"this process is in 105, {USER}" in said
    assert "agent.lldpd.gid" in said


def test_the_named_group_is_enough(listener: Path) -> None:
    assert ask(listener, 105, GROUP) == "connected"


def test_it_names_the_group_of_a_closed_folder(listener: Path) -> None:
    os.chown(listener.parent, 0, GROUP)
    listener.parent.chmod(0o750)
    assert f"{listener.parent} belongs to group {GROUP}" in ask(listener, 105)
    assert ask(listener, GROUP) == "connected"


def test_it_says_that_no_group_may_connect(listener: Path) -> None:
    listener.chmod(0o600)
    assert "its mode srw------- gives no right" in ask(listener, GROUP)


def test_it_suspects_a_security_module_if_the_process_has_the_right(listener: Path) -> None:
    assert "agent.seLinuxOptions" in explain_denial(listener)


def test_it_says_nothing_about_a_socket_that_is_gone(tmp_path: Path) -> None:
    assert explain_denial(tmp_path / "gone") == ""
