"""The peak memory of the generator while thousands of nodes lie in their reports.

python -m tests.bench.hostile_reports prints a row per input. Each must stay below 700 MiB, in the
first round and in rounds in which all liars changed their reports, in a process that receives the
reports as `serve` does: one after the other, below the quota. Another process makes them, because a
sweep takes half a gigabyte to make.
"""

from __future__ import annotations

import json
import subprocess  # noqa: TID251 - measures the peak of a separate process
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from generator.kube.cache import Cache
from generator.observe.observer import FabricObserver, TreeInputs
from generator.store.kinds import REPORT_QUOTA, read_stored_report
from runtime.process_settings import collect_garbage_rarely, tune_for_server
from tests.bench.hostile import BAR_BYTES, real_sweep
from tests.bench.process_status import HELD, PEAK, read_bytes
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    CollectorOutcome,
    ReportStatus,
    build_report,
    render_report,
)
from topology.reports.packed_reports import PackedReport
from topology.reports.sweep_parts import split_sweep

NUM_LIARS: Final = 18_000
NUM_CHANGED: Final = 2
"""In the second changed round the state of the first one is replaced."""
_NUM_HONEST: Final = 32
_NUM_PORTS: Final = 4
_ROOT: Final = Path(__file__).resolve().parents[2]
_COMMAND: Final = (sys.executable, "-m", "tests.bench.hostile_reports")

Document = Mapping[str, Any]
Heard = Callable[[int, int, int], str]
"""Returns the name of a device by the number of the liar, of the entry and of the round."""


class Peak(NamedTuple):
    """The peaks of one input."""

    first_bytes: int
    changed_bytes: int
    """The largest of all changed rounds."""
    held_bytes: tuple[int, ...]
    """What the process holds after each round."""
    num_kept: int
    """The number of reports that the quota kept."""
    seconds: float
    """Processor time of the last changed round."""

    @property
    def is_below_bar(self) -> bool:
        return max(self.first_bytes, self.changed_bytes) <= BAR_BYTES


def _liar(number: int, turn: int, *, entries: int, heard: Heard) -> Document:
    """Return the report of a host with neighbor entries at four ports."""

    def entry(at: int) -> Neighbor:
        name = heard(number, at, turn)
        ids = (Id(IdKind.CHASSIS_ID, name),)
        return Neighbor(ids, name, (), f"p{number}-{at}-{turn}", Source.LLDP)

    share = entries // _NUM_PORTS
    ports = tuple(
        Port(
            f"eth{port}",
            medium=Medium.ETHERNET,
            neighbors=tuple(entry(at) for at in range(port * share, (port + 1) * share)),
        )
        for port in range(_NUM_PORTS)
    )
    name = f"liar{number}"
    return render_report(build_report(Device(DeviceKind.HOST, name, (), ports), name=name))


def _liars(count: int, entries: int, heard: Heard) -> Callable[[int], Iterator[Document]]:
    def yield_documents(turn: int) -> Iterator[Document]:
        for number in range(count):
            yield _liar(number, turn, entries=entries, heard=heard)

    return yield_documents


def _honest(num_hosts: int) -> Iterator[Document]:
    """Yield hosts that hear the leaf of each of their eight ports."""
    for number in range(num_hosts):
        ports = tuple(
            Port(
                f"eth{rail}",
                medium=Medium.ETHERNET,
                neighbors=(
                    Neighbor(
                        (Id(IdKind.CHASSIS_ID, f"leaf{number // 32}-{rail}"),),
                        f"leaf{number // 32}-{rail}",
                        (),
                        f"Ethernet{number % 32}",
                        Source.LLDP,
                    ),
                ),
            )
            for rail in range(8)
        )
        name = f"n{number}"
        yield render_report(build_report(Device(DeviceKind.HOST, name, (), ports), name=name))


def _sweep(num_hcas: int) -> Iterator[Document]:
    """Yield the parts of a real sweep."""
    for part in split_sweep(real_sweep(num_hcas), node="n0", subnet="fe80000000000001"):
        yield render_report(part)


def _beside_sweep(turn: int) -> Iterator[Document]:
    """Yield a sweep, honest hosts, and liars of two kinds, which together are below the quota."""
    yield from _sweep(65_536)
    yield from _honest(8_192)
    for number in range(NUM_LIARS):
        yield _liar(number, turn, entries=8, heard=_shared if number % 2 else _invented)


def _all_at_once(turn: int) -> Iterator[Document]:
    # Above the quota, which refuses the sweeper first: no sweep is joined.
    yield from _sweep(65_536)
    yield from _honest(8_192)
    for number in range(NUM_LIARS):
        entries = (8, 8, 8, 8, 16, 64)[number % 6]
        heard = _shared if number % 2 else _invented
        yield _liar(number, turn, entries=entries, heard=heard)


def _shared(_: int, at: int, __: int) -> str:
    return f"switch{at}"


def _invented(number: int, at: int, turn: int) -> str:
    return f"made-up-{number}-{at}-{turn}"


INPUTS: Final[dict[str, Callable[[int], Iterator[Document]]]] = {
    "25,000 honest hosts": lambda _: _honest(25_000),
    "18,000 liars, 8 entries each, of the same devices": _liars(NUM_LIARS, 8, _shared),
    "18,000 liars, 16 entries each, of the same devices": _liars(NUM_LIARS, 16, _shared),
    "18,000 liars, 24 entries each, of the same devices": _liars(NUM_LIARS, 24, _shared),
    "3,000 liars, 64 entries each, of the same devices": _liars(3_000, 64, _shared),
    "3,000 liars, 256 entries each, of the same devices": _liars(3_000, 256, _shared),
    "8,192 liars, 8 made-up devices each": _liars(8_192, 8, _invented),
    "18,000 liars, 4 made-up devices each": _liars(NUM_LIARS, 4, _invented),
    "3,000 liars, 256 made-up devices each": _liars(3_000, 256, _invented),
    "12,000 liars, no part twice": lambda turn: (_shapeless(at, turn) for at in range(12_000)),
    "a sweep below the quota, 8,192 honest hosts and 18,000 liars": _beside_sweep,
    "a real sweep, 8,192 honest hosts and 18,000 liars of all kinds": _all_at_once,
}


def report_changing_hosts(num_hosts: int, num_entries: int, turn: int) -> Iterator[Document]:
    """Yield hosts beside honest ones that hear new neighbors in each turn, as a server has them."""
    hosts = _liars(num_hosts, num_entries, _invented)
    for document in (*_honest(_NUM_HONEST), *hosts(turn)):
        yield from _versioned(iter([document]), turn)


def report_changing_shapes(num_hosts: int, turn: int) -> Iterator[Document]:
    """Yield hosts beside honest ones of whose reports no part was ever the same before."""
    hosts = (_shapeless(number, turn) for number in range(num_hosts))
    return _versioned(chain(_honest(_NUM_HONEST), hosts), turn)


def _shapeless(number: int, turn: int) -> Document:
    """Return a report in which each text, number and list is new."""
    tag = f"{number}-{turn}"
    fresh = number + 1000 * turn

    def entry(port: int, at: int) -> Neighbor:
        ids = tuple(
            Id(IdKind.CHASSIS_ID, f"c{tag}-{port}-{at}-{one}", f"s{tag}-{one}") for one in range(8)
        )
        port_ids = (Id(IdKind.PORT_ID, f"i{tag}-{at}", f"t{tag}"),)
        return Neighbor(
            ids, f"m{tag}-{at}", port_ids, f"p{tag}", Source.LLDP, ttl_s=(fresh + at) % 60_000
        )

    ports = tuple(
        Port(
            f"eth{tag}-{port}",
            (Id(IdKind.PORT_ID, f"e{tag}-{port}", f"u{tag}"),),
            Medium.INFINIBAND if port % 4 == 3 else Medium.ETHERNET,
            PortState.UP if port % 2 else PortState.DOWN,
            rate_bps=fresh * 100 + port,
            bond_master=f"bond{tag}",
            rdma_device=f"mlx{tag}-{port}",
            pci_address=f"pci{tag}",
            numa_node=fresh % 60_000,
            subnet=f"{fresh:016x}",
            neighbors=tuple(entry(port, at) for at in range(16 if port % 4 == 0 else 1)),
        )
        for port in range(8)
    )
    ids = tuple(Id(IdKind.CHASSIS_ID, f"d{tag}-{one}", f"v{tag}-{one}") for one in range(16))
    name = f"liar{number}"
    status = ReportStatus(
        observed_at=f"2026-11-{1 + turn % 28:02}T10:00:00Z",
        agent_version=tag,
        collectors=(CollectorOutcome(name=f"c{tag}", outcome="failed", message=f"m{tag}"),),
        flapping=(f"f{tag}",),
    )
    device = Device(DeviceKind.HOST, f"h{tag}", ids, ports, f"model{tag}")
    return render_report(build_report(device, name=name, status=status))


def observe_alone(name: str, num_changed: int = NUM_CHANGED) -> Peak:
    """Return the peaks of an input, in a process of its own.

    Args:
        name: of the input.
        num_changed: how many rounds follow the first one.
    """
    done = subprocess.run(
        [*_COMMAND, "--observe", name, str(num_changed)],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    first, changed, held, num_kept, seconds = json.loads(done.stdout)
    return Peak(first, changed, tuple(held), num_kept, seconds)


def _observe(name: str, num_changed: int) -> None:
    collect_garbage_rarely()
    tune_for_server()
    cache: Cache[PackedReport] = Cache(read_stored_report, REPORT_QUOTA)
    cache.replace(_receive(name, 0), lambda: "1")
    if cache.has_room:
        cache.replace(_receive(name, 0), lambda: "1")
    observer = FabricObserver()
    observer.update(TreeInputs(cache.values, None), None)
    first, held, seconds = read_bytes(PEAK), [read_bytes(HELD)], 0.0
    for turn in range(1, num_changed + 1):
        for document in _receive(name, turn):
            cache.put(document)
        started = time.process_time()
        previous = observer.observation.tree if observer.observation else None
        observer.update(TreeInputs(cache.values, None), previous)
        seconds = time.process_time() - started
        held.append(read_bytes(HELD))
    num_kept = len(cache.values)
    json.dump([first, read_bytes(PEAK), held, num_kept, round(seconds, 1)], sys.stdout)


def _receive(name: str, turn: int) -> Iterator[Document]:
    """Yield the documents of a round, each decoded when it is needed."""
    with subprocess.Popen(
        [*_COMMAND, "--write", name, str(turn)], cwd=_ROOT, stdout=subprocess.PIPE
    ) as maker:
        if maker.stdout is not None:
            yield from map(json.loads, maker.stdout)
    if maker.returncode:
        raise subprocess.CalledProcessError(maker.returncode, maker.args)


def _write(name: str, turn: int) -> None:
    for document in _versioned(INPUTS[name](turn), turn):
        sys.stdout.write(f"{json.dumps(document)}\n")


def _versioned(documents: Iterator[Document], turn: int) -> Iterator[Document]:
    """Yield documents as the API server returns them, with a version of their round."""
    for document in documents:
        metadata = {**document["metadata"], "resourceVersion": str(turn)}
        yield {**document, "metadata": metadata}


def main() -> int:
    """Print the peaks of each input; return 1 if one is above the bar."""
    is_over = False
    for name in INPUTS:
        peak = observe_alone(name)
        is_over |= not peak.is_below_bar
        verdict = "ok" if peak.is_below_bar else "above the bar"
        sys.stdout.write(
            f"{peak.first_bytes >> 20:5} MiB first  {peak.changed_bytes >> 20:5} MiB changed  "
            f"{peak.seconds:6.1f} s  {peak.num_kept:6} kept  {verdict:14} {name}\n"
        )
        sys.stdout.flush()
    return int(is_over)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--observe", chosen, count]:
            _observe(chosen, int(count))
        case ["--write", chosen, count]:
            _write(chosen, int(count))
        case _:
            sys.exit(main())
