"""The peak memory of the generator on what a compromised node may report.

python -m tests.bench.hostile prints a row per input; each must stay below 700 MiB, in a process of
its own that does nothing else. Rows of real fabrics are beside those of hostile ones.
"""

from __future__ import annotations

import hashlib
import random  # noqa: TID251 - seeded
import subprocess  # noqa: TID251 - measures the peak of a separate process
import sys
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from generator.observe.observer import FabricObserver, TreeInputs
from runtime.process_settings import tune_for_server
from tests.bench.process_status import PEAK, read_bytes
from topology.reports.neighbor_report import ReportStatus, SweepPart
from topology.reports.packed_reports import PackedReport
from topology.reports.sweep_parts import MAX_PART_BYTES
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

BAR_BYTES: Final = 700 << 20
_ROOT: Final = Path(__file__).resolve().parents[2]
_SUBNET: Final = "fe80000000000001"


def real_sweep(num_hcas: int) -> str:
    """Return the sweep of an undamaged rail fabric."""
    spec = SyntheticSpec(FabricKind.RAIL, num_hcas // 8, rails=8, radix=64)
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec))))


def _switch(number: int, rows: str = "") -> str:
    head = f'Switch\t1 "S-{number:016x}"\t\t# "s{number}" base port 0 lid 0 lmc 0\n'
    return f"{head}{rows}\n"


def _row(port: int, peer: int, text: str) -> str:
    return f'[{port}]\t"S-{peer:016x}"[{port}]\t\t# "{text}" lid 0 4xNDR\n'


def _one_sided(num_switches: int, num_ports: int) -> str:
    rng = random.Random(1)  # noqa: S311 - no secret
    return "".join(
        _switch(
            number,
            "".join(
                _row(port, rng.randrange(num_switches) + 1, "s") for port in range(1, num_ports + 1)
            ),
        )
        for number in range(1, num_switches + 1)
    )


def _star(num_hcas: int) -> str:
    return "".join(
        f'Ca\t1 "H-{number + 1:016x}"\t\t# "n{number} mlx5_0"\n'
        + _row(1, 0xFFFFFFFF, "leaf").replace('# "', '# lid 0 lmc 0 "')
        + "\n"
        for number in range(num_hcas)
    )


def _far_names(num_switches: int, num_ports: int) -> str:
    return "".join(
        _switch(
            number,
            "".join(
                _row(port, number * 1000 + port, f"far{number}-{port}")
                for port in range(1, num_ports + 1)
            ),
        )
        for number in range(1, num_switches + 1)
    )


TEXTS: Final[dict[str, Callable[[], str]]] = {
    "real, 65,536 HCAs": lambda: real_sweep(65_536),
    "real, 200,000 HCAs": lambda: real_sweep(200_000),
    "one long line": lambda: 'Ca\t1 "H-0000000000000001"\t\t# "' + "a" * (100 << 20),
    "tiny lines": lambda: "x\n" * 4_000_000,
    "tiny lines of a small sweep": lambda: "x\n" * 500_000,
    "unknown lines": lambda: "".join(f"what {number}\n" for number in range(3_900_000)),
    "switches without ports": lambda: "".join(map(_switch, range(1, 65_001))),
    "too many switches without ports": lambda: "".join(map(_switch, range(1, 1_000_000))),
    "one switch again and again": lambda: _switch(1) * 1_000_000,
    "cables with one end, allowed": lambda: _one_sided(60_000, 3),
    "cables with one end, too many": lambda: _one_sided(12_000, 240),
    "neighbors without a record": lambda: _far_names(4_000, 48),
    "all HCAs on one port": lambda: _star(260_000),
}


def reports_of(text: str, *, node: str = "n1", subnet: str = _SUBNET) -> Iterator[PackedReport]:
    """Yield the parts of a sweep with any text, as a compromised node can write them."""
    raw = text.encode()
    packed = zlib.compress(raw, 9)
    pieces = [packed[k : k + MAX_PART_BYTES] for k in range(0, len(packed), MAX_PART_BYTES)]
    sweep_id = hashlib.sha256(raw).hexdigest()[:16]
    for number, piece in enumerate(pieces):
        facts = b64encode(piece).decode("ascii")
        part = SweepPart(subnet=subnet, sweep_id=sweep_id, part=number, of=len(pieces), facts=facts)
        yield PackedReport(f"{node}.sweep.{number}", ReportStatus(), None, b"", 0, part, ())


def several_reports(names: list[str]) -> tuple[PackedReport, ...]:
    """Return the sweeps of several nodes, each of its own subnet."""
    return tuple(
        report
        for number, name in enumerate(names)
        for report in reports_of(TEXTS[name](), node=f"n{number}", subnet=f"{number:016x}")
    )


def observe_alone(names: list[str]) -> int:
    """Return the peak in bytes of observing sweeps together, in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.bench.hostile", "--write", *names],
        cwd=_ROOT,
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.hostile", "--observe"],
        cwd=_ROOT,
        check=True,
        input=made.stdout,
        capture_output=True,
    )
    return int(done.stdout)


def _write(names: list[str]) -> None:
    for report in several_reports(names):
        if report.sweep is not None:
            fields = (report.name, report.sweep.subnet, report.sweep.sweep_id)
            numbers = (report.sweep.part, report.sweep.of, report.sweep.facts)
            sys.stdout.write(" ".join(map(str, (*fields, *numbers))) + "\n")


def _observe() -> None:
    tune_for_server()
    reports = []
    for line in sys.stdin:
        name, subnet, sweep_id, part, of, facts = line.split()
        sweep = SweepPart(subnet=subnet, sweep_id=sweep_id, part=int(part), of=int(of), facts=facts)
        reports.append(PackedReport(name, ReportStatus(), None, b"", 0, sweep, ()))
    FabricObserver().update(TreeInputs(tuple(reports), None), None)
    sys.stdout.write(f"{read_bytes(PEAK)}\n")


def main() -> int:
    """Print the peak of each input; return 1 if one is above the bar."""
    is_over = False
    rows = [[name] for name in TEXTS] + [
        ["real, 65,536 HCAs", "cables with one end, allowed", "neighbors without a record"]
    ]
    for names in rows:
        peak = observe_alone(names)
        is_over |= peak > BAR_BYTES
        verdict = "above the bar" if peak > BAR_BYTES else "ok"
        sys.stdout.write(f"{peak >> 20:5} MiB  {verdict:14} {' + '.join(names)}\n")
        sys.stdout.flush()
    return int(is_over)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--write", *chosen]:
            _write(chosen)
        case ["--observe"]:
            _observe()
        case _:
            sys.exit(main())
