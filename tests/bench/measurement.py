"""Time and memory of every step on one dump; outputs are compared before they are timed."""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from generator.ingest.sweeps import build_sweep_claims, parse_sweep
from generator.outputs.hypernode.forest import render_hypernodes
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from generator.reconcile.plan import plan_changes
from tests.bench.dumps import Dump
from tests.bench.parse_memory import measure_peak
from tests.bench.process_status import PEAK, forget_peak, read_bytes
from tests.bench.reference import parse_reference
from topology.inference.tree_inference import infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.fabric import Fabric
from topology.model.facts import Device, ParseResult
from topology.model.ids import IdKind
from topology.model.tree import TopologyTree, host_partitions

REFERENCE: Final = "reference parse"
PARSE: Final = "parse"
INFERENCE: Final = ("join the fabric", "infer the tree")
"""From what was parsed to the tree and the findings."""
STEPS: Final = (
    REFERENCE,
    PARSE,
    *INFERENCE,
    "plan, cold",
    "plan, at rest",
    "snapshot",
    "place, fresh shape",
    "place, repeated",
)
CALLS: Final = 20
"""Placements behind one time of a placement step, which is their median."""
_SLOTS: Final = 8


_now: Final = time.process_time
"""What else runs on the machine meanwhile must not count; no step waits or has a second thread."""


class Step(NamedTuple):
    """One step of one size."""

    name: str
    seconds: float
    """Median of the rounds."""
    peak_bytes: int
    """Largest resident set of the process while it ran, what earlier steps left included."""


class Measured(NamedTuple):
    """All steps of one size."""

    num_hcas: int
    num_nodes: int
    dump_bytes: int
    rounds: int
    steps: tuple[Step, ...]
    parse_peak_bytes: int
    """Peak of a process that only parses."""


class WrongResultError(Exception):
    """What would be timed does not do its work."""


def measure(dump: Dump, rounds: int) -> Measured:
    """Return the medians over interleaved rounds; meant for a process of its own.

    Raises:
        WrongResultError: the parsers differ, the tree is not the true one, or a plan or a placement
            is not what it must be.
    """
    gc.set_threshold(200_000, 20, 20)  # as the command does
    raw = dump.sweep.read_bytes()
    times: dict[str, list[float]] = {name: [] for name in STEPS}
    peaks = dict.fromkeys(STEPS, 0)
    num_nodes = 0
    for number in range(rounds):
        run = _Round(raw, dump.truth, is_checked=number == 0)
        for name, work in zip(STEPS, run.steps(), strict=True):
            gc.collect()
            forget_peak()
            times[name].append(work())
            peaks[name] = max(peaks[name], read_bytes(PEAK))
        num_nodes = len(run.tree.nodes)
        run.check_plans()
    steps = tuple(Step(name, statistics.median(times[name]), peaks[name]) for name in STEPS)
    peak = measure_peak(dump.sweep)
    return Measured(dump.num_hcas, num_nodes, len(raw), rounds, steps, peak)


class _Round:
    """One pass over all steps; each leaves what the next one needs."""

    tree: TopologyTree
    snapshot: Snapshot
    parsed: ParseResult
    fabric: Fabric

    def __init__(self, raw: bytes, truth: Path, *, is_checked: bool) -> None:
        self._raw = raw
        self._truth = truth
        self._is_checked = is_checked
        self._num_actions = (0, 0)

    def steps(self) -> Iterator[Callable[[], float]]:
        """Yield what runs a step and returns its seconds, in the order of STEPS."""
        yield lambda: _seconds(lambda: parse_reference(self._raw.decode()))
        yield self._parse
        yield self._join
        yield self._infer
        yield lambda: self._plan(is_cold=True)
        yield lambda: self._plan(is_cold=False)
        yield self._build_snapshot
        yield lambda: self._place(list(range(1, CALLS + 1)))
        yield lambda: self._place([CALLS] * CALLS)

    def _parse(self) -> float:
        if self._is_checked:
            _compare_parsers(parse_sweep(self._raw, source="").devices, self._raw)
        start = _now()
        self.parsed = parse_sweep(self._raw, source="")
        return _now() - start

    def _join(self) -> float:
        start = _now()
        self.fabric = build_fabric(build_sweep_claims(self.parsed))
        seconds = _now() - start
        self.parsed = ParseResult()
        return seconds

    def _infer(self) -> float:
        start = _now()
        self.tree = infer_tree(self.fabric).tree
        seconds = _now() - start
        if self._is_checked:
            found = [sorted(sorted(hosts) for hosts in tier) for tier in host_partitions(self.tree)]
            if found != json.loads(self._truth.read_text()):
                raise WrongResultError("the inferred tree is not the true one")
        del self.fabric
        return seconds

    def _plan(self, *, is_cold: bool) -> float:
        observed = () if is_cold else render_hypernodes(self.tree)
        start = _now()
        actions = plan_changes(render_hypernodes(self.tree), observed)
        seconds = _now() - start
        cold, rest = self._num_actions
        self._num_actions = (len(actions), rest) if is_cold else (cold, len(actions))
        return seconds

    def check_plans(self) -> None:
        """Raise WrongResultError unless the cold plan made all domains and the other one none."""
        if self._num_actions != (len(self.tree.domains), 0):
            raise WrongResultError(f"(cold, at rest) actions: {self._num_actions}")

    def _build_snapshot(self) -> float:
        specs = {name: NodeSpec(name, capacity={"slots": _SLOTS}) for name in self.tree.nodes}
        start = _now()
        self.snapshot = build_snapshot(self.tree, specs, ())
        return _now() - start

    def _place(self, counts: list[int]) -> float:
        """Return the median seconds of single placements of so many whole nodes."""
        seconds = []
        for count in counts:
            request = parse_request(whole_nodes(min(count, len(self.tree.nodes)), unit="slots"))
            start = _now()
            placement = place(self.snapshot, request, clock=time.monotonic, explains=False)
            seconds.append(_now() - start)
            if not placement.is_feasible:
                raise WrongResultError("a gang that fits was not placed")
        return statistics.median(seconds)


def _seconds(work: Callable[[], object]) -> float:
    start = _now()
    kept = work()
    seconds = _now() - start
    del kept
    return seconds


def whole_nodes(count: int, *, unit: str) -> dict[str, Any]:
    """Return the document that requests so many nodes for a gang, each with eight of a unit."""
    group: dict[str, Any] = {"name": "workers", "count": count, "request": {unit: _SLOTS}}
    return {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "PlacementRequest",
        "spec": {"groups": [group]},
    }


def _compare_parsers(devices: Sequence[Device], raw: bytes) -> None:
    theirs = {guid: dict(record.ports) for guid, record in parse_reference(raw.decode()).items()}
    ours = {
        _guid(device): {
            int(port.ids[0].subtype): (far.value, int(far.subtype))
            for port in device.ports
            for heard in port.neighbors
            for far in heard.port_ids
            if far.kind is IdKind.NODE_GUID
        }
        for device in devices
    }
    if ours != theirs:
        raise WrongResultError("the two parsers read different cables")


def _guid(device: Device) -> str:
    return next(found.value for found in device.ids if found.kind is IdKind.NODE_GUID)
