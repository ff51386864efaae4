"""LLDP frames in the fixtures: lines of hex digits; # starts a comment."""

from pathlib import Path

from tests.topology.sources.plain import cases

CASES = cases("lldpdu")


def read_frame(path: Path) -> bytes:
    lines = path.read_text(encoding="utf-8").splitlines()
    return bytes.fromhex("".join(line.partition("#")[0] for line in lines))
