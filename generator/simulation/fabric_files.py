"""The files of a synthetic fabric, as agents and tools would write them, and its true tree."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from generator.store.object_files import render_json
from runtime.program import noting_interruption
from topology.model.errors import ConfigError, WriteError, show
from topology.model.facts import Medium
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    build_report,
    render_report,
)
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import (
    DamagedFabric,
    FaultSpec,
    RandomSource,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
    derive_truth,
    render_inventory,
    render_lldpcli,
    render_snmpwalks,
    render_truth,
    report_claims,
    subnet_of,
    sweep_devices,
    sysfs_files,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

TRUTH_FILE: Final = "truth.json"
_MEDIA: Final = (Medium.INFINIBAND, Medium.ETHERNET)
_OWN_NAMES: Final = frozenset(
    {"reports", "nodes.yaml", "ibnetdiscover", "lldpcli", "snmpwalk", "sysfs", TRUTH_FILE}
)
_FOLDER_MODE: Final = 0o755


@dataclass(frozen=True, slots=True)
class FabricSimulation:
    """A fabric, its faults, and the random source that draws them."""

    spec: SyntheticSpec
    faults: FaultSpec
    make_rng: Callable[[], RandomSource]
    """Returns a source with the same seed each time."""
    num_sysfs_hosts: int
    """Number of hosts with sysfs files: the first ones."""
    observed_at: str
    """The time of all reports, in RFC 3339."""

    def damage(self, medium: Medium) -> DamagedFabric:
        """Return the fabric with a medium; every medium has the same cables and faults.

        Raises:
            ConfigError: the parameters make no fabric, or the faults do not fit it.
        """
        wiring = build_wiring(replace(self.spec, medium=medium))
        return damage_fabric(wiring, self.faults, self.make_rng())


def render_fabric_files(simulation: FabricSimulation) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every file, one at a time: memory does not grow with their number.

    ibnetdiscover has port numbers and HCAs only, so the sweep of an Ethernet fabric is that of the
    InfiniBand fabric with the same cables. LLDP has Ethernet ports only, so captures and walks are
    those of the Ethernet fabric. Equal simulations give equal files.

    Raises:
        ConfigError: the parameters make no fabric, or the faults do not fit it.
    """
    by_medium = {medium: simulation.damage(medium) for medium in _MEDIA}
    damaged = by_medium[simulation.spec.medium]
    truth = render_truth(derive_truth(damaged), damaged.faults)
    yield TRUTH_FILE, render_json(truth)
    yield "nodes.yaml", _render_node_list(*map(render_inventory, by_medium.values()))
    sweeps = {
        subnet_of(plane): render_ibnetdiscover(sweep_devices(by_medium[Medium.INFINIBAND], plane))
        for plane in range(simulation.spec.num_planes)
    }
    for subnet, sweep in sweeps.items():
        yield f"ibnetdiscover/{subnet}.txt", sweep
    status = ReportStatus(observed_at=simulation.observed_at)
    for report in _build_reports(damaged, sweeps):
        dated = msgspec.structs.replace(report, status=status)
        yield f"reports/{report.metadata.name}.yaml", render_json(render_report(dated))
    for name, text in render_lldpcli(by_medium[Medium.ETHERNET]):
        yield f"lldpcli/{name}", text
    for name, text in render_snmpwalks(by_medium[Medium.ETHERNET]):
        yield f"snmpwalk/{name}", text
    for host in damaged.wiring.hosts[: simulation.num_sysfs_hosts]:
        for path, text in sysfs_files(damaged, host.name).items():
            yield f"sysfs/{host.name}/{path}", text


def _build_reports(damaged: DamagedFabric, sweeps: Mapping[str, str]) -> Iterator[NeighborReport]:
    for claim in report_claims(damaged):
        yield build_report(claim.device, name=claim.report)
    if damaged.wiring.spec.medium is Medium.INFINIBAND:
        hosts = (host.name for host in damaged.wiring.hosts)
        sweepers = (name for name in hosts if name not in damaged.silent)
        # Each sweeper sweeps one subnet, because the parts of a reporter are numbered.
        for sweeper, (subnet, sweep) in zip(sweepers, sweeps.items(), strict=False):
            yield from split_sweep(sweep, node=sweeper, subnet=subnet)


def _render_node_list(*inventories: dict[str, Any]) -> str:
    """Return the nodes with the ids of every medium, one line per node.

    Writes JSON, a subset of YAML: parsing it is about 50 times faster.
    """
    rows = []
    for nodes in zip(*(inventory["nodes"] for inventory in inventories), strict=True):
        ids = [row for node in nodes for row in node["ids"]]
        rows.append(json.dumps(nodes[0] | {"ids": ids}))
    lines = ",\n".join(rows)
    return f'{{"nodes": [\n{lines}\n]}}\n'


def write_folder(
    files: Iterable[tuple[str, str]], out: Path, *, force: bool, on_file: Callable[[int], None]
) -> int:
    """Write files into a new folder, completely or not at all; return their number.

    Args:
        files: paths below the folder, and texts.
        out: the folder; may exist if it is empty.
        force: replace a folder that contains only an earlier simulation.
        on_file: called with the number of files so far.

    Raises:
        ConfigError: the folder contains something else.
        WriteError: the folder cannot be written.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - a link is not followed, but replaced or refused
    _check_free(out, force=force)
    is_complete = False

    def describe() -> str:
        return f"{show(str(out))} is {'complete' if is_complete else 'as before'}"

    try:
        with noting_interruption(describe), _parents_created(out), _scratch_beside(out) as scratch:
            num = _write_all(files, scratch / "new", on_file)
            exchange(out, new=scratch / "new", old=scratch / "old")
            is_complete = True
    except FileExistsError as error:
        raise WriteError(f"cannot write {show(str(out))}: a file is in its path") from error
    except OSError as error:
        raise WriteError(f"cannot write {show(str(out))}: {error.strerror}") from error
    return num


@contextmanager
def _parents_created(out: Path) -> Iterator[None]:
    """Create the folders above a path; remove them again if the context fails."""
    missing = [folder for folder in out.parents if not os.path.lexists(folder)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):  # somebody else uses it by now
            for folder in missing:
                folder.rmdir()
        raise


@contextmanager
def _scratch_beside(out: Path) -> Iterator[Path]:
    """Create a folder beside a path; remove it with its content, also if a signal comes then."""
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield scratch
    finally:
        try:
            shutil.rmtree(scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise


def exchange(out: Path, *, new: Path, old: Path) -> None:
    """Move a folder to its place; the folder that was there moves aside, and back if that fails."""
    try:
        if out.exists():
            out.rename(old)
        new.rename(out)
    except BaseException:
        if old.exists() and not out.exists():
            old.rename(out)
        raise


def _check_free(out: Path, *, force: bool) -> None:
    try:
        present = {entry.name for entry in out.iterdir()} if out.exists() else set()
    except OSError as error:
        raise ConfigError(f"{show(str(out))}: {error.strerror}") from error
    if out.is_symlink() or present - _OWN_NAMES or (present and TRUTH_FILE not in present):
        raise ConfigError(f"{show(str(out))} is not an earlier simulation; use a new folder")
    if present and not force:
        raise ConfigError(
            f"{show(str(out))} already contains a simulation; use --force to replace it"
        )


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
