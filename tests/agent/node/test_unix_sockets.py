"""Sockets on which programs listen, from the kernel's table."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from agent.node.unix_sockets import find_listening

TITLE = "Num       RefCount Protocol Flags    Type St Inode Path\n"
ROW = "0000000000000000: 00000002 00000000 {flags} 0001 01 12345 {path}\n"


def find(folder: Path, *rows: tuple[str, str]) -> tuple[str, ...]:
    table = folder / "net" / "unix"
    table.parent.mkdir()
    lines = [ROW.format(flags=flags, path=path) for flags, path in rows]
    table.write_text("".join([TITLE, *lines]))
    return find_listening("lldpd", folder)


@pytest.mark.parametrize(
    ("flags", "path", "is_found"),
    [
        pytest.param("00010000", "/run/lldpd.socket", True, id="of lldpd"),
        pytest.param("00010000", "/srv/a b/my-lldpd.sock", True, id="with a blank in its path"),
        pytest.param("00000000", "/run/lldpd.socket", False, id="of a client"),
        pytest.param("00010000", "/run/lldpd/snmp.sock", False, id="of another program"),
        pytest.param("00010000", "@/com/intel/lldpd", False, id="without a file"),
        pytest.param("nonsense", "/run/lldpd.socket", False, id="in a table of another form"),
    ],
)
def test_it_judges_a_socket(tmp_path: Path, flags: str, path: str, *, is_found: bool) -> None:
    assert find(tmp_path, (flags, path)) == ((path,) if is_found else ())


def test_it_finds_nothing_without_a_table(tmp_path: Path) -> None:
    assert find_listening("lldpd", tmp_path) == ()


def test_it_finds_a_real_socket_while_a_program_listens(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("s") / "lldpd.socket"
    with closing(socket.socket(socket.AF_UNIX)) as opened:
        opened.bind(str(file))
        assert str(file) not in find_listening("lldpd", Path("/proc"))
        opened.listen()
        assert str(file) in find_listening("lldpd", Path("/proc"))
    assert str(file) not in find_listening("lldpd", Path("/proc"))
