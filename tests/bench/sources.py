"""Measure what each mix of sources costs, by size: python -m tests.bench.sources.

Rail fabrics of 8 rails, undamaged; mixes with a sweep also with a tenth of the links lost. Every
mix is measured as `toponaut tree` runs it (a process of its own: reading, joining and inferring),
and as `toponaut serve` does: the first round, then rounds in which one thing changed. Compiled
modules are cached, as in an installation. Each figure is compared with its goal.
"""

from __future__ import annotations

import gc
import json
import os
import random  # noqa: TID251 - seeded: the same damage in every run
import resource
import subprocess  # noqa: TID251 - the command is measured as users run it
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import click

from generator.ingest.captures import SWEEPS
from generator.ingest.sources import Sources, read_inputs
from generator.objects.inventory import Inventory
from generator.observe.observation import observe_fabric
from generator.observe.observer import FabricObserver, TreeInputs
from generator.store.local_files import read_inventory
from tests.bench.measurement import WrongResultError, alone
from tests.bench.reference import as_printed, parse_reference
from tests.bench.source_figures import (
    FIRST,
    MIXES,
    NOTHING,
    MixFigure,
    RoundFigure,
    render,
    render_text,
)
from topology.model.facts import Device, Medium
from topology.model.tree import host_partitions
from topology.reports.neighbor_report import build_report, render_report
from topology.reports.packed_reports import PackedReport, pack_report, unpack_report
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import (
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
    derive_truth,
    render_inventory,
    report_claims,
    subnet_of,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SIZES: Final = (1024, 8192, 65536, 200_000)
LOST_LINKS: Final = 0.1
_CACHE: Final = "PYTHONPYCACHEPREFIX"
_MIN_HCAS: Final = 64
_RAILS: Final = 8
_RADIX: Final = 64
_now: Final = time.process_time


class SourceFiles(NamedTuple):
    """The files of one size."""

    num_hcas: int
    folder: Path
    lost_links: float = 0.0

    def options(self, mix: str) -> list[str]:
        """Return the options of `toponaut tree` for a mix."""
        found = []
        for part in MIXES[mix]:
            option = {"sweep": "--ibnetdiscover", "nodes": "--nodes"}.get(part, "--reports")
            found += [option, str(self.path(part))]
        return found

    def sources(self, mix: str) -> Sources:
        """Return a mix as the command reads it."""
        parts = MIXES[mix]
        reports = [self.path(part) for part in parts if part.endswith("reports")]
        return Sources(
            reports=reports[0] if reports else None,
            captures={SWEEPS: (self.path("sweep"),)} if "sweep" in parts else {},
            nodes=self.path("nodes") if "nodes" in parts else None,
        )

    def path(self, part: str) -> Path:
        """Return the file or folder of a part of a mix."""
        return self.folder / {"sweep": "sweep.txt", "nodes": "nodes.json"}.get(part, part)


def write_sources(
    folder: Path, num_hcas: int, lost_links: float = 0.0, *, mixes: Iterable[str] = MIXES
) -> SourceFiles:
    """Write the sweep, the list and the reports that mixes of one fabric need, and its truth."""
    spec = SyntheticSpec(FabricKind.RAIL, max(1, num_hcas // _RAILS), rails=_RAILS, radix=_RADIX)
    swept, heard = (
        damage_fabric(
            build_wiring(replace(spec, medium=medium)),
            FaultSpec(lose_links=lost_links),
            random.Random(1),  # noqa: S311 - a fabric, and the same cables in both media
        )
        for medium in (Medium.INFINIBAND, Medium.ETHERNET)
    )
    files = SourceFiles(num_hcas, folder, lost_links)
    text = as_printed(render_ibnetdiscover(sweep_devices(swept)))
    files.path("sweep").write_text(text, encoding="utf-8")
    lists = zip(render_inventory(swept)["nodes"], render_inventory(heard)["nodes"], strict=True)
    rows = [{**node, "ids": [*node["ids"], *other["ids"]]} for node, other in lists]
    files.path("nodes").write_text(json.dumps({"nodes": rows}), encoding="utf-8")
    hcas = {row.report: row.device for row in report_claims(swept)}
    nics = {row.report: row.device for row in report_claims(heard)}
    both = {name: _add_ports(device, hcas.get(name)) for name, device in nics.items()}
    parts = {part for mix in mixes for part in MIXES[mix]}
    for part, devices in (("hca_reports", hcas), ("lldp_reports", nics), ("all_reports", both)):
        if part not in parts:
            continue
        files.path(part).mkdir()
        for name, device in devices.items():
            document = render_report(build_report(device, name=name))
            (files.path(part) / f"{name}.yaml").write_text(json.dumps(document), encoding="utf-8")
    partitions = host_partitions(derive_truth(swept))
    truth = [sorted(sorted(hosts) for hosts in tier) for tier in partitions]
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    return files


def _add_ports(device: Device, other: Device | None) -> Device:
    """Return a device with the ids and ports of another report about it."""
    if other is None:
        return device
    ids = tuple(sorted({*device.ids, *other.ids}))
    return replace(device, ids=ids, ports=(*device.ports, *other.ports))


def measure_command(files: SourceFiles, mix: str, reference_s: float) -> MixFigure:
    """Return what a mix costs.

    Raises:
        WrongResultError: the command fails, or the tree is not the true one.
    """
    code = "import sys; from generator.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "tree", *files.options(mix), "-o", "json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, capture_output=True, check=False, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode:
        raise WrongResultError(ran.stderr.decode()[-400:])
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    infer_s = alone(measure_inference, files, mix)
    peak_bytes = after.ru_maxrss * 1024
    return MixFigure(files.num_hcas, files.lost_links, mix, spent, infer_s, peak_bytes, reference_s)


def _environment() -> dict[str, str]:
    """Return the environment of a command that caches compiled modules."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def warm_cache(mixes: Sequence[str]) -> Iterator[None]:
    """Cache the compiled modules that the commands import, as an installation does."""
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
        earlier = os.environ.get(_CACHE)
        os.environ[_CACHE] = f"{folder}/cache"
        try:
            files = alone(write_sources, Path(folder), _MIN_HCAS, mixes=mixes)
            for mix in mixes:
                alone(measure_command, files, mix, 1.0)
            yield
        finally:
            os.environ.pop(_CACHE)
            if earlier is not None:
                os.environ[_CACHE] = earlier


def measure_inference(files: SourceFiles, mix: str) -> float:
    """Return the time from the inputs in memory to the tree and the findings.

    Raises:
        WrongResultError: there is no tree, or it is not the true one.
    """
    gc.set_threshold(200_000, 20, 20)  # as the command does
    inputs = read_inputs(files.sources(mix))
    gc.collect()
    start = _now()
    observed = observe_fabric(inputs)
    seconds = _now() - start
    if observed is None:
        raise WrongResultError("no tree")
    found = [
        sorted(sorted(hosts) for hosts in tier)
        for tier in host_partitions(observed.observation.tree)
    ]
    if found != json.loads((files.folder / "truth.json").read_text()):
        raise WrongResultError(f"{mix}: the inferred tree is not the true one")
    return seconds


def measure_reference(files: SourceFiles) -> float:
    """Return the time of the reference parse of the sweep."""
    raw = files.path("sweep").read_bytes()
    start = _now()
    parse_reference(raw.decode())
    return _now() - start


def measure_rounds(files: SourceFiles, mix: str) -> list[RoundFigure]:
    """Return what the first round of `toponaut serve` costs, and rounds with one change."""
    gc.set_threshold(200_000, 20, 20)
    inventory = read_inventory(files.path("nodes"))
    text = files.path("sweep").read_text(encoding="utf-8")
    has_sweep = "sweep" in MIXES[mix]
    stored = read_inputs(files.sources(mix)._replace(captures={}, nodes=None)).reports
    reports = [pack_report(unpack_report(report)) for report in stored]
    parts = list(_split(text)) if has_sweep else []
    at = text.rindex("NDR")
    later = list(_split(text[:at] + "HDR" + text[at + 3 :])) if has_sweep else []
    rounds: list[tuple[str, list[PackedReport]]] = [(FIRST, [*reports, *parts])]
    if reports:
        rounds.append(("a report", [*_change_report(reports), *parts]))
    rounds.append((NOTHING, [*_change_report(reports), *_copy(parts)]))
    if has_sweep:
        rounds.append(("a cable of the sweep", [*_change_report(reports), *later]))
    return list(_run_rounds(files, mix, inventory, rounds))


def _run_rounds(
    files: SourceFiles,
    mix: str,
    inventory: Inventory | None,
    rounds: Iterable[tuple[str, list[PackedReport]]],
) -> Iterator[RoundFigure]:
    observer = FabricObserver()
    for change, reports in rounds:
        previous = observer.observation
        gc.collect()
        start = _now()
        tree = previous.tree if previous is not None else None
        observer.update(TreeInputs(tuple(reports), inventory), tree)
        seconds = _now() - start
        if observer.observation is None:
            raise WrongResultError("no observation")
        yield RoundFigure(files.num_hcas, mix, change, seconds)


def _split(text: str) -> Iterator[PackedReport]:
    return map(pack_report, split_sweep(text, node="node-0001", subnet=subnet_of(0)))


def _copy(reports: Iterable[PackedReport]) -> list[PackedReport]:
    """Return equal reports that are other objects, as they arrive anew from the API server."""
    return [pack_report(unpack_report(report)) for report in reports]


def _change_report(reports: Sequence[PackedReport]) -> list[PackedReport]:
    """Return reports of which one has another rate of its last port."""
    if not reports:
        return []
    device = reports[0].device
    if device is None:
        raise WrongResultError("the first report is no device")
    ports = (*device.ports[:-1], device.ports[-1]._replace(rate_bps=1_000_000_000))
    changed = build_report(replace(device, ports=ports), name=reports[0].name)
    return [pack_report(changed), *reports[1:]]


def measure_sizes(
    sizes: Sequence[int], mixes: Sequence[str]
) -> tuple[list[MixFigure], list[RoundFigure]]:
    """Measure each mix of each size in processes of its own; progress on stderr."""
    figures: list[MixFigure] = []
    rounds: list[RoundFigure] = []
    for size in sizes:
        for lost_links in (0.0, LOST_LINKS):
            chosen = [mix for mix in mixes if "sweep" in MIXES[mix] or not lost_links]
            with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
                title = f"{size} HCAs, {lost_links:.0%} of the links lost"
                click.echo(f"{title}: making the fabric", err=True)
                files = alone(write_sources, Path(folder), size, lost_links, mixes=chosen)
                reference_s = alone(measure_reference, files)
                for mix in chosen:
                    click.echo(f"{title}: {mix}", err=True)
                    figures.append(alone(measure_command, files, mix, reference_s))
                    rounds += [] if lost_links else alone(measure_rounds, files, mix)
    return figures, rounds


@click.command()
@click.option("--sizes", default=",".join(map(str, SIZES)), show_default=True)
@click.option("--mixes", default=",".join(MIXES), show_default=True)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def main(sizes: str, mixes: str, output: str) -> None:
    """Print the time and peak memory of each mix of sources, and of the rounds of serve."""
    chosen = [mix.strip() for mix in mixes.split(",")]
    with warm_cache(chosen):
        found = render(*measure_sizes([int(size) for size in sizes.split(",")], chosen))
    click.echo(json.dumps(found, indent=2) if output == "json" else render_text(found))


if __name__ == "__main__":
    main()
