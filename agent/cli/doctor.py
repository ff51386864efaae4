"""The checks of a node: what each collector found, what is missing, and how to fix it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from agent.collection import CollectorRun, RunOutcome
from runtime.checks import Check, Outcome
from topology.model.errors import list_some, show
from topology.model.facts import Medium, Port, PortState, Source

_MAX_SHOWN: Final = 6
_MOUNT_SYSFS: Final = "mount the host's /sys into the container, and name it with --sysfs-root"
_LLDPD: Final = "lldpd"
_FRAMES: Final = "frames"


class NodeTools(NamedTuple):
    """What a node has beside its ports."""

    has_program: Callable[[str], bool]
    """Returns whether a program is installed."""
    lldpcli_version: str = ""
    """Empty if the program does not tell."""
    umads: Mapping[str, bool] = MappingProxyType({})
    """The device files of InfiniBand's management datagrams, and whether this user may use each."""


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
        *_check_infiniband(by_name, ib_ports),
        *_check_sweep_program(ib_ports, tools.has_program),
        *_check_umads(ib_ports, tools.umads),
        *_check_nvlink(by_name),
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
    yield Check(subject, Outcome.OK, f"{len(up)} of {len(run.facts.ports)} ports are up")


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
    if lldpd.outcome is RunOutcome.FAILED and not lldpd.is_absent:
        fix = "systemctl status lldpd; its socket must be readable: --lldpd-socket names it"
        yield Check("LLDP", Outcome.ERROR, lldpd.message, fix)
        return
    message = "lldpd runs, and has heard no neighbor"
    fix = "turn LLDP on for the switch's ports, wait 30 s, then: lldpcli show neighbors"
    if lldpd.is_absent:
        message = f"{lldpd.message}; the agent listens for frames itself if it is allowed to"
        fix = "apt-get install lldpd && systemctl enable --now lldpd"
    if has_infiniband:
        yield Check("LLDP", Outcome.OK, message)
    else:
        yield Check("LLDP", Outcome.WARNING, message, fix)


def _check_lldpcli(runs: Mapping[str, CollectorRun], version: str) -> Iterator[Check]:
    """Yield the version of the client; lldpd itself tells its version to nobody."""
    if runs[_LLDPD].is_absent or not version:
        return
    message = f"version {show(version)}; lldpd must have the same major version"
    yield Check("lldpcli", Outcome.OK, message)


def _check_firmware(runs: Mapping[str, CollectorRun]) -> Iterator[Check]:
    ports = [port.name for port in _ports_of(runs, "firmware_lldp") if port.firmware_lldp]
    if ports:
        shown = list_some(map(show, ports), _MAX_SHOWN)
        message = f"the firmware of {shown} consumes LLDP frames before the host sees them"
        fix = (
            f"ethtool --set-priv-flags {show(ports[0])} fw-lldp-agent off (ice), or "
            "disable-fw-lldp on (i40e)"
        )
        yield Check("LLDP in firmware", Outcome.WARNING, message, fix)


def _check_infiniband(runs: Mapping[str, CollectorRun], ports: Sequence[Port]) -> Iterator[Check]:
    subject, run = "InfiniBand", runs["ib_sysfs"]
    if run.outcome is RunOutcome.FAILED:
        yield Check(subject, Outcome.ERROR, run.message, _MOUNT_SYSFS)
        return
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


def _check_nvlink(runs: Mapping[str, CollectorRun]) -> Iterator[Check]:
    run = runs.get("nvlink")
    if run is None:
        return
    if run.outcome is RunOutcome.FAILED and not run.is_absent:
        yield Check("NVLink", Outcome.WARNING, run.message, "run nvidia-smi on the node")
    else:
        yield Check("NVLink", Outcome.OK, run.message or "read from nvidia-smi")
