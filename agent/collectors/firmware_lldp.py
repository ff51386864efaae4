"""Finds cards whose firmware consumes LLDP frames, from private flags that `ethtool` shows.

Such a card has its own LLDP agent, which keeps the frames from the host. The collector queries the
two drivers whose cards have such an agent and a flag for it. Mellanox cards have an agent too, but
only their own tools show it.
"""

from __future__ import annotations

from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import Runner
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings
from topology.model.errors import list_some, show
from topology.model.facts import Device, Medium, Port
from topology.model.ids import Id, IdKind, natural_key
from topology.sources.host.linux_nics import parse_firmware_lldp

_NET = "class/net"
_DRIVERS: Final = frozenset({"i40e", "ice"})
_MAX_SHOWN: Final = 3
_MAX_CARDS: Final = 64
"""The most ports to query; each query starts a process."""


def find_absence(settings: AgentSettings, runner: Runner) -> SourceAbsent | None:
    """Return why no flag can be read, or None if there are a card and ethtool."""
    names = _interfaces(settings)
    if not names:
        return SourceAbsent("no card with its own LLDP agent")
    if runner.find(settings.ethtool) is None:
        shown = list_some(map(show, names), _MAX_SHOWN)
        return SourceAbsent(
            f"{show(settings.ethtool)} not found",
            f"the firmware of these ports may consume LLDP frames: {shown}",
        )
    return None


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the ports whose cards may consume LLDP frames, each with the value of the flag.

    Raises:
        SourceAbsent: there is no such card; or there is one, and no ethtool.
        CollectError: ethtool hangs, or cannot be started.
    """
    absence = find_absence(settings, runner)
    if absence is not None:
        raise absence
    flags = {name: _query_flag(settings, runner, name) for name in _interfaces(settings)}
    unknown = [show(name) for name, is_consumed in flags.items() if is_consumed is None]
    return CollectedFacts(
        ports=tuple(
            _port(name, is_consumed=is_consumed)
            for name, is_consumed in flags.items()
            if is_consumed is not None
        ),
        note=f"no LLDP flag for {', '.join(unknown)}" if unknown else "",
    )


def restore(device: Device) -> CollectedFacts:
    """Return the values of the flags in a report."""
    return CollectedFacts(
        ports=tuple(
            _port(port.name, is_consumed=port.firmware_lldp)
            for port in device.ports
            if port.firmware_lldp is not None
        )
    )


COLLECTOR: Final = Collector(collect, find_absence, restore)


def _interfaces(settings: AgentSettings) -> tuple[str, ...]:
    root = Sysfs(settings.sysfs_root)
    names = (
        name
        for name in root.list_names(_NET)
        if root.link_name(f"{_NET}/{name}/device/driver") in _DRIVERS
    )
    return tuple(sorted(names, key=natural_key)[:_MAX_CARDS])


def _query_flag(settings: AgentSettings, runner: Runner, name: str) -> bool | None:
    """Return the value of the card's flag; None without the flag, as with old drivers.

    Raises:
        CommandTimeout: ethtool did not answer; it would not answer for the next card either.
    """
    argv = (settings.ethtool, "--show-priv-flags", name)
    result = runner.run(argv, settings.limits)
    if result.exit_code:
        return None
    return parse_firmware_lldp(result.stdout.decode("utf-8", "replace"))


def _port(name: str, *, is_consumed: bool | None) -> Port:
    ids = (Id(IdKind.IFNAME, name),)
    return Port(name, ids, medium=Medium.ETHERNET, firmware_lldp=is_consumed)
