"""The device files for sweeps, and whether they may be used."""

import os
from pathlib import Path

import pytest

from agent.node.hcas import find_umads


def test_it_finds_the_files_of_ports_and_no_others(tmp_path: Path) -> None:
    for name in ("umad0", "umad1", "issm0", "uverbs0", "umad"):
        (tmp_path / name).touch()
    assert find_umads(tmp_path) == {str(tmp_path / f"umad{num}"): True for num in range(2)}


def test_it_finds_nothing_without_the_folder(tmp_path: Path) -> None:
    assert find_umads(tmp_path / "infiniband") == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every file: run as another user")
def test_it_says_which_file_this_user_may_not_open(tmp_path: Path) -> None:
    (tmp_path / "umad0").touch(mode=0o400)
    assert find_umads(tmp_path) == {str(tmp_path / "umad0"): False}
