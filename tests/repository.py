"""The checkout that the tests run in: its root and the files that git knows of."""

import subprocess  # noqa: TID251 - git knows best what belongs to the project
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return the files of the project, sorted; those added but not yet committed count."""
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]  # CI may own it differently
    listed = subprocess.run([*git, "ls-files", "-z"], check=True, capture_output=True, text=True)
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))
