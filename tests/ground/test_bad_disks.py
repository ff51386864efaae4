"""Every command on a full or read-only disk, and beyond limits: README's table holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ground.command_runs import END_S, check_text, leftovers, prepare, shell, with_output
from tests.ground.exit_rows import ROWS, names_of

pytestmark = pytest.mark.timeout(400)
OUTPUTS = {name: row for name, row in ROWS.items() if row.output}


def has_mounts() -> bool:
    """Return whether this user may mount file systems, out of sight of all others."""
    try:
        return not subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
            capture_output=True,
            check=False,
        ).returncode
    except FileNotFoundError:
        return False


needs_mounts = pytest.mark.skipif(not has_mounts(), reason="mounting needs root: run as root")


def in_full_folder(
    line: list[str], folder: Path, prepared: str
) -> subprocess.CompletedProcess[str]:
    """Run a command whose folder has no space left; list the folder at the end."""
    script = (
        f'mount -t tmpfs -o size=16k none "{folder}" && {prepared} '
        f'head -c 16k /dev/zero > "{folder}/ballast" 2>/dev/null; "$@"; code=$?; '
        f'find "{folder}" -mindepth 1 ! -name ballast ! -name out > "{folder}.left"; exit $code'
    )
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *line],
        check=False,
        capture_output=True,
        text=True,
        timeout=END_S,
        stdin=subprocess.DEVNULL,
    )


@needs_mounts
@pytest.mark.parametrize("name", names_of(OUTPUTS))
def test_it_exits_with_1_and_leaves_nothing_on_a_full_disk_in(
    name: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    prepared = f'mkdir "{folder}/out" &&' if name == "toponaut approve" else ""
    if ROWS[name].waits:
        pytest.skip("it reports a failed round in its log and tries again")
    done = in_full_folder(with_output(name, inputs, folder), folder, prepared)
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
    check_text(done.stderr)
    left = (tmp_path / "full.left").read_text().splitlines()
    assert not [path for path in left if Path(path).is_file()], left
    assert not [path for path in left if "tmp" in Path(path).name], left


@needs_mounts
@pytest.mark.parametrize("name", names_of(OUTPUTS))
def test_it_exits_with_1_in_a_read_only_folder_in(
    name: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    prepare(name, folder)
    script = f'mount --bind "{folder}" "{folder}" && mount -o remount,bind,ro "{folder}" && "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *with_output(name, inputs, folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=END_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1, done.stderr
    assert "Read-only file system" in done.stderr
    check_text(done.stderr)


@pytest.mark.parametrize("name", names_of(name for name in OUTPUTS if not ROWS[name].waits))
def test_it_exits_with_1_beyond_the_limit_on_file_sizes_in(
    name: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    prepare(name, tmp_path)
    done = shell('ulimit -f 0; exec "$@"', with_output(name, inputs, tmp_path))
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stderr
    check_text(done.stderr)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]
    assert not left
    assert not leftovers(tmp_path)


def test_it_says_that_there_is_not_enough_memory(inputs: dict[str, str]) -> None:
    line = [sys.executable, "-m", "generator", "tree", inputs["sweep"]]
    done = shell('ulimit -v 90000; exec "$@"', line)
    assert done.returncode in {0, 1}
    check_text(done.stderr)
