"""A made-up fabric as the files that people and agents would have of it, with its true tree."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from topology.model.errors import ConfigError, show
from topology.model.facts import Medium
from topology.reports.neighbor_report import NeighborReport, render_report, build_report
from topology.reports.sweep_parts import split_sweep
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    DamagedFabric,
    SyntheticSpec,
    FaultSpec,
    RandomSource,
    build_wiring,
    damage_fabric,
    derive_truth,
    render_inventory,
    render_lldpcli,
    render_truth,
    report_claims,
    subnet_of,
    sweep_devices,
    sysfs_files,
)

TRUTH_FILE: Final = "truth.json"
_MEDIA: Final = (Medium.INFINIBAND, Medium.ETHERNET)
_OWN_NAMES: Final = frozenset(
    {"reports", "nodes.yaml", "ibnetdiscover", "lldpcli", "sysfs", TRUTH_FILE}
)
_FOLDER_MODE: Final = 0o755


@dataclass(frozen=True, slots=True)
class FabricSimulation:
    """A fabric, what goes wrong in it, and the source that draws what exactly."""

    spec: SyntheticSpec
    faults: FaultSpec
    make_rng: Callable[[], RandomSource]
    """Gives equally seeded sources."""
    num_sysfs_hosts: int
    """Hosts whose sysfs is shown, the first ones."""

    def damage(self, medium: Medium) -> DamagedFabric:
        """Return the fabric over a medium; every medium has the same cables and faults.

        Raises:
            ConfigError: the numbers make no fabric, or more faults than it has parts.
        """
        wiring = build_wiring(replace(self.spec, medium=medium))
        return damage_fabric(wiring, self.faults, self.make_rng())


def render_fabric_files(simulation: FabricSimulation) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every file, one at a time: memory does not grow with their number.

    ibnetdiscover numbers ports and knows HCAs only, so an Ethernet fabric shows there as the
    InfiniBand one with the same cables. Equal simulations give equal files.

    Raises:
        ConfigError: the numbers make no fabric, or more faults than it has parts.
    """
    by_medium = {medium: simulation.damage(medium) for medium in _MEDIA}
    damaged = by_medium[simulation.spec.medium]
    truth = render_truth(derive_truth(damaged), damaged.faults)
    yield TRUTH_FILE, _render_json(truth)
    yield "nodes.yaml", _render_node_list(*map(render_inventory, by_medium.values()))
    sweeps = {
        subnet_of(plane): render_ibnetdiscover(sweep_devices(by_medium[Medium.INFINIBAND], plane))
        for plane in range(simulation.spec.num_planes)
    }
    for subnet, sweep in sweeps.items():
        yield f"ibnetdiscover/{subnet}.txt", sweep
    for report in _build_reports(damaged, sweeps):
        yield f"reports/{report.metadata.name}.yaml", _render_json(render_report(report))
    for name, text in render_lldpcli(damaged):
        yield f"lldpcli/{name}", text
    for host in damaged.wiring.hosts[: simulation.num_sysfs_hosts]:
        for path, text in sysfs_files(damaged, host.name).items():
            yield f"sysfs/{host.name}/{path}", text


def _build_reports(damaged: DamagedFabric, sweeps: Mapping[str, str]) -> Iterator[NeighborReport]:
    for claim in report_claims(damaged):
        yield build_report(claim.device, name=claim.report)
    if damaged.wiring.spec.medium is Medium.INFINIBAND:
        hosts = (host.name for host in damaged.wiring.hosts)
        sweepers = (name for name in hosts if name not in damaged.silent)
        # Each sweeps one subnet, for a reporter's parts are numbered.
        for sweeper, (subnet, sweep) in zip(sweepers, sweeps.items(), strict=False):
            yield from split_sweep(sweep, node=sweeper, subnet=subnet)


def _render_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _render_node_list(*inventories: dict[str, Any]) -> str:
    """Return the nodes with the ids of every medium, a line each.

    JSON, which YAML includes: it is read some 50 times faster.
    """
    rows = []
    for nodes in zip(*(found["nodes"] for found in inventories), strict=True):
        ids = [row for node in nodes for row in node["ids"]]
        rows.append(json.dumps(nodes[0] | {"ids": ids}))
    lines = ",\n".join(rows)
    return f'{{"nodes": [\n{lines}\n]}}\n'


def write_folder(
    files: Iterable[tuple[str, str]], out: Path, *, force: bool, on_file: Callable[[int], None]
) -> int:
    """Write files into a new folder, which appears whole or not at all; return their number.

    Args:
        files: paths below the folder, and texts.
        out: the folder; may exist if it is empty.
        force: replace a folder that holds nothing but an earlier simulation.
        on_file: is told how many files there are so far.

    Raises:
        ConfigError: the folder holds something else, or cannot be written.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - a link is not followed, but replaced or refused
    _check_free(out, force=force)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            num = _write_all(files, Path(scratch) / "new", on_file)
            if out.exists():
                out.rename(Path(scratch) / "old")
            (Path(scratch) / "new").rename(out)
    except OSError as error:
        raise ConfigError(f"cannot write {show(str(out))}: {error.strerror}") from error
    return num


def _check_free(out: Path, *, force: bool) -> None:
    try:
        present = {entry.name for entry in out.iterdir()} if out.exists() else set()
    except OSError as error:
        raise ConfigError(f"{show(str(out))}: {error.strerror}") from error
    if out.is_symlink() or present - _OWN_NAMES or (present and TRUTH_FILE not in present):
        raise ConfigError(f"{show(str(out))} is no simulation of before; name a new folder")
    if present and not force:
        raise ConfigError(f"{show(str(out))} holds a simulation already; --force replaces it")


def _write_all(files: Iterable[tuple[str, str]], root: Path, on_file: Callable[[int], None]) -> int:
    root.mkdir(mode=_FOLDER_MODE)
    known: set[Path] = set()
    num = 0
    for num, (path, text) in enumerate(files, 1):
        file = root / path
        if file.parent not in known:
            file.parent.mkdir(parents=True, exist_ok=True)
            known.add(file.parent)
        file.write_text(text, encoding="utf-8")
        on_file(num)
    return num
