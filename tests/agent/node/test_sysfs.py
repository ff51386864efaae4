"""Reading sysfs, with fixture trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.node.sysfs import MAX_FILE_BYTES, Sysfs
from tests.agent.nodes import plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plant(
        tmp_path,
        {
            "secret": "of another place\n",
            "sys/class/net/eth0": "->../../devices/pci/eth0",
            "sys/devices/pci/eth0/speed": "25000\n",
            "sys/devices/pci/eth0/master": "->../../virtual/bond0",
            "sys/devices/virtual/bond0/type": "1\n",
            "sys/odd/page": "x" * 10_000,
            "sys/odd/bytes": "",
            "sys/odd/out": "->../../secret",
            "sys/odd/loop": "->loop",
            "sys/odd/dangling": "->nowhere",
        },
    )
    (tmp_path / "sys/odd/bytes").write_bytes(b"\xff\xfe ok \n")
    os.mkfifo(tmp_path / "sys/odd/pipe")
    return tmp_path / "sys"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("class/net/eth0/speed", "25000", id="a file behind a link"),
        pytest.param("odd/bytes", "\ufffd\ufffd ok", id="bytes that are no text"),
        pytest.param("odd/page", "x" * MAX_FILE_BYTES, id="no more than one page"),
        pytest.param("odd/pipe", "", id="a pipe without a writer"),
        pytest.param("odd/absent", None, id="an absent file"),
        pytest.param("odd", None, id="a folder"),
        pytest.param("odd/loop", None, id="a link to itself"),
        pytest.param("odd/dangling", None, id="a link to nothing"),
        pytest.param("odd/out", None, id="a link that leaves the root"),
        pytest.param("../secret", None, id="a path that leaves the root"),
        pytest.param("odd/\x00", None, id="a path that no file can have"),
    ],
)
def test_it_reads(root: Path, path: str, text: str | None) -> None:
    assert Sysfs(root).read(path) == text


def test_it_treats_a_read_error_as_absence() -> None:
    # Reading this file fails with EIO where nothing is mapped at address 0: like EINVAL of sysfs.
    assert Sysfs(Path("/proc/self")).read("mem") is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("42\n", 42), ("-1\n", -1), ("", None), ("1.5", None), ("--1", None), ("²", None)],
)
def test_it_reads_numbers(tmp_path: Path, text: str, number: int | None) -> None:
    (tmp_path / "f").write_text(text)
    assert Sysfs(tmp_path).read_int("f") == number


def test_it_lists_sorted_names_and_none_of_an_absent_folder(root: Path) -> None:
    sysfs = Sysfs(root)
    assert sysfs.list_names("odd") == ("bytes", "dangling", "loop", "out", "page", "pipe")
    assert (
        sysfs.list_names("odd/absent")
        == sysfs.list_names("odd/page")
        == sysfs.list_names("..")
        == ()
    )


def test_it_leaves_out_names_that_are_not_utf8(tmp_path: Path) -> None:
    for name in (b"eth0", b"\xff0", "ethé".encode()):
        os.mknod(os.fsencode(tmp_path) + b"/" + name)
    assert Sysfs(tmp_path).list_names("") == ("eth0", "ethé")


def test_it_lists_no_more_names_than_its_limit(root: Path) -> None:
    assert Sysfs(root, max_entries=2).list_names("odd") == ("bytes", "dangling")


def test_it_returns_the_target_of_a_link(root: Path) -> None:
    sysfs = Sysfs(root)
    assert sysfs.link_name("class/net/eth0/master") == "bond0"
    assert sysfs.link_name("class/net/eth0/speed") is None
    assert str(sysfs.resolve_link("class/net/eth0")) == "devices/pci/eth0"
    assert sysfs.resolve_link("odd/dangling") is None
    assert sysfs.resolve_link("odd/out") is None
    assert sysfs.exists("class/net/eth0")
    assert not sysfs.exists("odd/dangling")
