"""The checks of a node: what each collector found, what is missing, and how to fix it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from agent.collection import CollectorRun, RunOutcome
from agent.node.pci import name_functions
from runtime.checks import Check, Outcome
from topology.model.errors import list_some, show
from topology.model.facts import Medium, Port, PortState, Source

_MAX_SHOWN: Final = 6
_MOUNT_SYSFS: Final = "mount the host's /sys into the container, and name it with --sysfs-root"
_LLDPD: Final = "lldpd"
_FRAMES: Final = "frames"
_INSTALL_LLDPD: Final = "apt-get install lldpd && systemctl enable --now lldpd"
_LOAD_DRIVER: Final = (
    "load the driver of the cards (lspci -nnk -d ::0207), such as: modprobe mlx5_ib"
)
_RUN_NVIDIA_SMI: Final = (
    "run nvidia-smi where the agent runs; in a pod it needs NVIDIA's runtime class: set "
    "agent.runtimeClassName of the chart; if the GPUs reach no other node: --nvlink never"
)
_RESTART: Final = "restart the agent; in a pod, its liveness probe does so"


class NodeTools(NamedTuple):
    """The programs, the device files and the cards of a node."""

    has_program: Callable[[str], bool]
    """Returns whether a program is installed."""
    lldpcli_version: str = ""
    """Empty if the program does not tell."""
    umads: Mapping[str, bool] = MappingProxyType({})
    """The device files of InfiniBand's management datagrams, and whether this user may use each."""
    gpus: Sequence[str] = ()
    """The PCI addresses of the GPUs whose NVLink domain nvidia-smi shows."""
    unused_hcas: Sequence[str] = ()
    """The PCI addresses of the InfiniBand cards that no driver made an HCA of."""
    refused: Sequence[str] = ()
    """The counters of HCAs that the firmware refuses, below the root of sysfs."""


def check_node(runs: Sequence[CollectorRun], tools: NodeTools) -> list[Check]:
    """Return the checks of a node.

    Args:
        runs: one collection, without a sweep.
        tools: the programs and the device files that the node has.
    """
    by_name = {run.collector: run for run in runs}
    ib_ports = [port for port in _ports_of(by_name, "ib_sysfs") if port.medium is Medium.INFINIBAND]
    return [
        *_check_interfaces(by_name),
        *_check_lldp(by_name, has_infiniband=bool(ib_ports)),
        *_check_lldpcli(by_name, tools.lldpcli_version),
        *_check_firmware(by_name),
        *_check_infiniband(by_name, ib_ports, tools.unused_hcas),
        *_check_counters(tools.refused),
        *_check_sweep_program(ib_ports, tools.has_program),
        *_check_umads(ib_ports, tools.umads),
        *_check_nvlink(by_name, tools.gpus),
    ]


def _ports_of(runs: Mapping[str, CollectorRun], collector: str) -> tuple[Port, ...]:
    run = runs.get(collector)
    return run.facts.ports if run is not None else ()


def _check_interfaces(runs: Mapping[str, CollectorRun]) -> Iterator[Check]:
    subject, run = "interfaces", runs["net_sysfs"]
    if run.outcome is RunOutcome.FAILED:
        yield Check(subject, Outcome.ERROR, run.message, _MOUNT_SYSFS)
        return
    up = [port for port in run.facts.ports if port.state is PortState.UP]
    message = f"{len(up)} of {len(run.facts.ports)} ports are up"
    if run.facts.hidden_ports:
        message += f"; {run.message}"
    yield Check(subject, Outcome.OK, message)


def _check_lldp(runs: Mapping[str, CollectorRun], *, has_infiniband: bool) -> Iterator[Check]:
    """Yield whether this node hears its Ethernet neighbors, by lldpd or by itself."""
    lldpd, frames = runs[_LLDPD], runs.get(_FRAMES)
    heard = [
        port.name
        for run in (lldpd, frames)
        if run is not None
        for port in run.facts.ports
        if any(neighbor.source is not Source.IB for neighbor in port.neighbors)
    ]
    if heard:
        shown = list_some(map(show, dict.fromkeys(heard)), _MAX_SHOWN)
        yield Check("LLDP", Outcome.OK, f"a neighbor is heard on {shown}")
        return
    failed = frames if frames is not None and frames.outcome is RunOutcome.FAILED else lldpd
    if failed.outcome is RunOutcome.FAILED:
        yield Check("LLDP", Outcome.ERROR, failed.message, _find_lldp_fix(failed))
        return
    message = "lldpd runs, and has heard no neighbor"
    fix = "turn LLDP on for the switch's ports, wait 30 s, then: lldpcli show neighbors"
    if frames is not None and not frames.is_absent:
        message, fix = frames.message, "turn LLDP on for the switch's ports, and wait 30 s"
    elif lldpd.is_absent:
        own = "the agent listens for frames itself if it is allowed to"
        message = f"{lldpd.message}; {frames.message if frames is not None else own}"
        fix = _INSTALL_LLDPD
    if has_infiniband:
        yield Check("LLDP", Outcome.OK, message)
    else:
        yield Check("LLDP", Outcome.WARNING, message, fix)


def _find_lldp_fix(failed: CollectorRun) -> str:
    if failed.needs_restart:
        return _RESTART
    if failed.collector == _FRAMES:
        return "see the mode frames in docs/install.md"
    if failed.is_absent:
        return "install lldpcli where the agent runs, and name the socket with --lldpd-socket"
    return "systemctl status lldpd; its socket must be readable: --lldpd-socket names it"


def _check_lldpcli(runs: Mapping[str, CollectorRun], version: str) -> Iterator[Check]:
    """Yield the version of the client; lldpd itself does not report its version."""
    if runs[_LLDPD].is_absent or not version:
        return
    message = f"version {show(version)}; lldpd must have the same major version"
    yield Check("lldpcli", Outcome.OK, message)


def _check_firmware(runs: Mapping[str, CollectorRun]) -> Iterator[Check]:
    subject, run = "LLDP in firmware", runs.get("firmware_lldp")
    if run is not None and run.message and not run.facts.ports:
        fix = "on the node: ethtool --show-priv-flags PORT"
        if run.outcome is RunOutcome.FAILED:
            yield Check(subject, Outcome.WARNING, run.message, f"apt-get install ethtool; {fix}")
        elif not run.is_absent:
            yield Check(subject, Outcome.UNKNOWN, run.message, fix)
    ports = [port.name for port in _ports_of(runs, "firmware_lldp") if port.firmware_lldp]
    if ports:
        shown = list_some(map(show, ports), _MAX_SHOWN)
        message = f"the firmware of {shown} consumes LLDP frames before the host sees them"
        fix = (
            f"ethtool --set-priv-flags {show(ports[0])} fw-lldp-agent off (ice), or "
            "disable-fw-lldp on (i40e)"
        )
        yield Check(subject, Outcome.WARNING, message, fix)


def _check_infiniband(
    runs: Mapping[str, CollectorRun], ports: Sequence[Port], unused: Sequence[str]
) -> Iterator[Check]:
    subject, run = "InfiniBand", runs["ib_sysfs"]
    if run.outcome is RunOutcome.FAILED:
        fix = _LOAD_DRIVER if run.is_absent else _MOUNT_SYSFS
        yield Check(subject, Outcome.ERROR, run.message, fix)
        return
    if run.facts.ports and run.message:
        outcome, fix = (Outcome.WARNING, _LOAD_DRIVER) if unused else (Outcome.OK, "")
        yield Check(subject, outcome, run.message, fix)
    if not ports:
        yield Check(subject, Outcome.OK, "no InfiniBand port")
        return
    down = [port.name for port in ports if port.state is PortState.DOWN]
    message = f"{len(ports) - len(down)} of {len(ports)} ports are up"
    if down:
        shown = list_some(map(show, down), _MAX_SHOWN)
        fix = "check the cable and the transceiver, then: ibstat"
        yield Check(subject, Outcome.WARNING, f"{message}; down: {shown}", fix)
    else:
        yield Check(subject, Outcome.OK, message)


def _check_counters(refused: Sequence[str]) -> Iterator[Check]:
    """Yield the counters for which every read writes a line to the kernel's log.

    There is nothing to mend here: the firmware keeps these functions for Fabric Manager.
    """
    if refused:
        shown = list_some(map(show, refused), _MAX_SHOWN)
        message = (
            f"the firmware refuses {shown}; the agent read each once, and counts link losses by "
            "carrier and state"
        )
        yield Check("link counters", Outcome.OK, message)


def _check_sweep_program(
    ports: Sequence[Port], has_program: Callable[[str], bool]
) -> Iterator[Check]:
    """Yield whether this node could sweep if it were elected."""
    if not ports:
        return
    subject = "sweeps"
    if has_program("ibnetdiscover"):
        yield Check(subject, Outcome.OK, "ibnetdiscover is installed")
        return
    message = "ibnetdiscover is not installed, so this node cannot sweep if it is elected"
    fix = "apt-get install infiniband-diags"
    yield Check(subject, Outcome.WARNING, message, fix)


def _check_umads(ports: Sequence[Port], umads: Mapping[str, bool]) -> Iterator[Check]:
    """Yield whether a sweep may send management datagrams.

    Source: Documentation/infiniband/user_mad.rst of Linux.
    """
    if not ports:
        return
    subject = "umad"
    refused = [file for file, is_usable in sorted(umads.items()) if not is_usable]
    if not umads:
        message = "there is no /dev/infiniband/umad*, so this node cannot sweep if it is elected"
        fix = "modprobe ib_umad; in a pod, see the sweepers in docs/install.md"
        yield Check(subject, Outcome.WARNING, message, fix)
    elif refused:
        shown = list_some(map(show, refused), _MAX_SHOWN)
        message = f"this user may not read and write {shown}, so sweeps fail"
        yield Check(subject, Outcome.WARNING, message, "run as root, or see docs/install.md")
    else:
        yield Check(subject, Outcome.OK, f"{len(umads)} of {len(umads)} device files are usable")


def _check_nvlink(runs: Mapping[str, CollectorRun], gpus: Sequence[str]) -> Iterator[Check]:
    subject, run = "NVLink", runs.get("nvlink")
    if run is None:
        return
    if run.outcome is RunOutcome.FAILED:
        yield Check(subject, Outcome.WARNING, run.message, _RUN_NVIDIA_SMI)
    elif run.is_absent and gpus:
        message = f"{run.message}; {name_functions('NVIDIA GPU', gpus)}"
        yield Check(subject, Outcome.WARNING, message, _RUN_NVIDIA_SMI)
    else:
        yield Check(subject, Outcome.OK, run.message or "read from nvidia-smi")
