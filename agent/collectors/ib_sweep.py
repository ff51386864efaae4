"""The whole InfiniBand subnet as ibnetdiscover sees it from this node; only elected nodes sweep.

A sweep that found nothing is a failure and never an empty fabric. One that lost some answers is
kept: the cables it did see are there.
"""

from __future__ import annotations

from typing import Final

from agent.command import Limits, Runner, tail_of
from agent.config import DEFAULT_SUBNET, Settings, SweepSettings
from agent.probing import Collected, Collector, SourceAbsent, Sweep
from agent.sysfs import Sysfs
from topology.errors import CollectError, CommandFailed, show
from topology.facts import Device, DeviceKind
from topology.ids import natural_key, parse_guid
from topology.sources.ibnetdiscover import parse_ibnetdiscover, render_ibnetdiscover

_INFINIBAND = "class/infiniband"
_NO_HARDWARE: Final = "can't open UMAD port"
_LOST_ANSWER: Final = "timed out"


def absence(settings: Settings, runner: Runner) -> str | None:
    """Return why this node does not sweep, None when it seems that it can."""
    if settings.sweep is None:
        return "not asked to sweep (--sweep)"
    program = settings.sweep.command[0]
    if runner.find(program) is None:
        return f"{show(program)} not found: is infiniband-diags installed?"
    return None


def collect(settings: Settings, runner: Runner) -> Collected:
    """Return the canonical text of one sweep; nothing when sweeping was not asked for.

    Raises:
        SourceAbsent: this node has no InfiniBand device that can be opened.
        CollectError: the command is missing, failed, or found no switch at all.
    """
    sweep = settings.sweep
    if sweep is None:
        return Collected(note="not asked to sweep")
    result = runner.run(sweep.command, Limits(sweep.deadline_s, sweep.max_output_bytes))
    if result.exit_code != 0:
        problem = f"{show(sweep.command[0])}: exit {result.exit_code}" + tail_of(result.stderr)
        raise SourceAbsent(problem) if _NO_HARDWARE in result.stderr else CommandFailed(problem)
    parsed = parse_ibnetdiscover(result.stdout, source="ibnetdiscover")
    num_lost = sum(_LOST_ANSWER in line for line in result.stderr.splitlines())
    if not any(device.kind is DeviceKind.SWITCH for device in parsed.devices):
        lost = f", {num_lost} queries timed out" if num_lost else ""
        raise CollectError(f"the sweep found no switch{lost}" + tail_of(result.stderr))
    return Collected(
        sweep=Sweep(
            subnet=sweep.subnet or _local_subnet(settings, sweep),
            text=render_ibnetdiscover(parsed.devices),
        ),
        skipped=parsed.errors,
        note=f"partial: {num_lost} queries timed out" if num_lost else "",
    )


def recall(_device: Device) -> Collected:
    """Return nothing: a sweep has reports of its own, which stay until a new one replaces them."""
    return Collected()


COLLECTOR: Final = Collector(collect, absence, recall)


def _local_subnet(settings: Settings, sweep: SweepSettings) -> str:
    """Return the prefix of the port that the command names, else of the first active one."""
    root = Sysfs(settings.sysfs_root)
    device, port = _option(sweep.command, "-C"), _option(sweep.command, "-P")
    for name in (device,) if device else root.names(_INFINIBAND):
        ports = f"{_INFINIBAND}/{name}/ports"
        for number in (port,) if port else sorted(root.names(ports), key=natural_key):
            is_active = "ACTIVE" in (root.read(f"{ports}/{number}/state") or "")
            is_fabric = root.read(f"{ports}/{number}/link_layer") == "InfiniBand"
            gid = (root.read(f"{ports}/{number}/gids/0") or "").replace(":", "")
            prefix = parse_guid(gid[:16])
            if is_active and is_fabric and prefix:
                return prefix
    return DEFAULT_SUBNET


def _option(command: tuple[str, ...], name: str) -> str | None:
    return command[command.index(name) + 1] if name in command[:-1] else None
