"""Whether a card's own LLDP agent keeps frames from the host: its private flags, by `ethtool`.

Asked of the two drivers whose cards have such an agent and a flag that tells. Mellanox cards have
one too, but only their own tools can tell.
"""

from __future__ import annotations

from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import CommandLimits, Runner
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings
from topology.model.errors import show
from topology.model.facts import Device, Medium, Port
from topology.model.ids import Id, IdKind, natural_key
from topology.sources.host.private_flags import parse_firmware_lldp

_NET = "class/net"
_DRIVERS: Final = frozenset({"i40e", "ice"})
_MAX_CARDS: Final = 64
"""Ports of such cards; each costs a process."""


def explain_absence(settings: AgentSettings, runner: Runner) -> str | None:
    """Return why nothing can be asked, None when there is a card and ethtool."""
    if not _interfaces(settings):
        return "no card with an LLDP agent of its own"
    if runner.find(settings.ethtool) is None:
        return f"{show(settings.ethtool)} not found: whether cards eat LLDP frames is unknown"
    return None


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the ports of such cards, each with what its flag says.

    Raises:
        SourceAbsent: no such card, or no ethtool.
        CollectError: ethtool hangs, or cannot be started.
    """
    missing = explain_absence(settings, runner)
    if missing:
        raise SourceAbsent(missing)
    told = {name: _query_flag(settings, runner, name) for name in _interfaces(settings)}
    silent = [show(name) for name, is_eaten in told.items() if is_eaten is None]
    return CollectedFacts(
        ports=tuple(
            _port(name, is_eaten=is_eaten)
            for name, is_eaten in told.items()
            if is_eaten is not None
        ),
        note=f"no LLDP flag told of {', '.join(silent)}" if silent else "",
    )


def restore(device: Device) -> CollectedFacts:
    """Return what flags once said, out of a report."""
    return CollectedFacts(
        ports=tuple(
            _port(port.name, is_eaten=port.firmware_lldp)
            for port in device.ports
            if port.firmware_lldp is not None
        )
    )


COLLECTOR: Final = Collector(collect, explain_absence, restore)


def _interfaces(settings: AgentSettings) -> tuple[str, ...]:
    root = Sysfs(settings.sysfs_root)
    names = (
        name
        for name in root.list_names(_NET)
        if root.link_name(f"{_NET}/{name}/device/driver") in _DRIVERS
    )
    return tuple(sorted(names, key=natural_key)[:_MAX_CARDS])


def _query_flag(settings: AgentSettings, runner: Runner, name: str) -> bool | None:
    """Return what the card's flag says; None where it has none, as with old drivers.

    Raises:
        CommandTimeout: it did not answer; the next card would not either.
    """
    argv = (settings.ethtool, "--show-priv-flags", name)
    result = runner.run(argv, CommandLimits(settings.deadline_s, settings.max_output_bytes))
    if result.exit_code:
        return None
    return parse_firmware_lldp(result.stdout.decode("utf-8", "replace"))


def _port(name: str, *, is_eaten: bool | None) -> Port:
    return Port(name, (Id(IdKind.IFNAME, name),), medium=Medium.ETHERNET, firmware_lldp=is_eaten)
