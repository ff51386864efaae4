"""LLDP frames as the fixtures write them: hex digits in lines, what follows a # is a remark."""

from pathlib import Path

from tests.topology.sources.plain import cases

CASES = cases("lldpdu")


def read_frame(path: Path) -> bytes:
    lines = path.read_text(encoding="utf-8").splitlines()
    return bytes.fromhex("".join(line.partition("#")[0] for line in lines))
