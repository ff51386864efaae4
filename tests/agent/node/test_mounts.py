"""Mounts whose source was deleted, from tables of mounts.

`tests/lab/test_replaced_folder.py` has real ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.node.mounts import explain_deleted_mount, find_deleted_mount

HEAD = "36 35 0:24"
TAIL = "rw,nosuid shared:5 - tmpfs tmpfs rw,size=1024k"
LLDPD = "/run/lldpd"
ROOT_MOUNT = f"{HEAD} / / {TAIL}"
DELETED = f"{HEAD} /lldpd//deleted {LLDPD} {TAIL}"


def find(folder: Path, path: str, *lines: str) -> str | None:
    table = folder / "self" / "mountinfo"
    table.parent.mkdir(exist_ok=True)
    table.write_text("".join(f"{line}\n" for line in lines))
    return find_deleted_mount(path, folder)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param((ROOT_MOUNT, DELETED), LLDPD, id="the folder was deleted"),
        pytest.param((DELETED, ROOT_MOUNT), LLDPD, id="in any order"),
        pytest.param(
            (f"{HEAD} /lldpd.socket//deleted {LLDPD}/lldpd.socket {TAIL}",),
            f"{LLDPD}/lldpd.socket",
            id="the socket itself was mounted",
        ),
        pytest.param((ROOT_MOUNT, f"{HEAD} /lldpd {LLDPD} {TAIL}"), None, id="it is there"),
        pytest.param((DELETED, f"{HEAD} /lldpd {LLDPD} {TAIL}"), None, id="a mount is over it"),
        pytest.param((f"{HEAD} /x//deleted /run/lldp {TAIL}",), None, id="another folder"),
        pytest.param((ROOT_MOUNT,), None, id="nothing is mounted"),
        pytest.param(("", "36 35", "\\040"), None, id="lines of another form"),
    ],
)
def test_it_finds_the_mount_of_a_path_if(
    tmp_path: Path, lines: tuple[str, ...], found: str | None
) -> None:
    assert find(tmp_path, f"{LLDPD}/lldpd.socket", *lines) == found


def test_it_finds_nothing_without_a_table(tmp_path: Path) -> None:
    assert find_deleted_mount(LLDPD, tmp_path) is None
    assert explain_deleted_mount(LLDPD, "it", proc_root=tmp_path) == ""
