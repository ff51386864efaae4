"""Neighbors that lldpd hears, asked of `lldpcli -f json0`.

The plain `json` form is never asked for: a neighbor's name can forge entries in it.
"""

from __future__ import annotations

import re
from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import CommandResult, CommandLimits, Runner, tail_of
from agent.settings import AgentSettings
from topology.model.errors import CollectError, CommandFailed, ParseError, show
from topology.model.facts import Device, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.sources.lldp.lldpcli import parse_chassis, parse_neighbors

MAX_IDS: Final = 64
"""Of one neighbor: a frame has room for more management addresses than a report; the chassis id
sorts before them."""

_NO_SOCKET: Final = ("unable to connect to socket", "No such file or directory")
# Of lldpcli's own complaints; the time in it would make equal outcomes differ.
_LOG_PREFIX: Final = re.compile(r"^\S+T\S+ \[\w+/\w+\] ", re.MULTILINE)
_OWN_KINDS: Final = frozenset({IdKind.CHASSIS_ID, IdKind.HOSTNAME})
_NEIGHBORS: Final = ("show", "neighbors", "details")
_CHASSIS: Final = ("show", "chassis")


def explain_absence(settings: AgentSettings, runner: Runner) -> str | None:
    """Return why lldpd cannot be asked, None when it answers."""
    try:
        _run_lldpcli(settings, runner, _CHASSIS)
    except CollectError as error:
        return str(error)
    return None


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return what each port hears, and the chassis id under which this node itself is heard.

    Raises:
        SourceAbsent: lldpd is not installed, or not running.
        CollectError: lldpd is there and does not answer, or not in the form asked for.
    """
    heard = parse_neighbors(_run_lldpcli(settings, runner, _NEIGHBORS), source="lldpcli neighbors")
    if heard.errors and not heard.ports:
        raise CollectError(f"nothing readable: {heard.errors[0]}")
    ids, errors = _own_ids(settings, runner)
    ports = tuple(
        _port(name, tuple(one._replace(device_ids=one.device_ids[:MAX_IDS]) for one in neighbors))
        for name, neighbors in heard.ports
    )
    return CollectedFacts(
        ids=ids,
        ports=ports,
        errors=(*heard.errors, *errors),
        note="" if ports else "no neighbor heard",
    )


def restore(device: Device) -> CollectedFacts:
    """Return what lldpd once said, out of a report."""
    heard = (
        (port.name, tuple(one for one in port.neighbors if one.source is not Source.IB))
        for port in device.ports
        if port.medium is Medium.ETHERNET
    )
    return CollectedFacts(
        # The name that the agent was told is in every report, whether lldpd said it or not.
        ids=frozenset(
            one for one in device.ids if one.kind in _OWN_KINDS and one.value != device.name
        ),
        ports=tuple(_port(name, neighbors) for name, neighbors in heard if neighbors),
    )


COLLECTOR: Final = Collector(collect, explain_absence, restore)


def _port(name: str, neighbors: tuple[Neighbor, ...]) -> Port:
    ids = (Id(IdKind.IFNAME, name),)
    return Port(name, ids, medium=Medium.ETHERNET, neighbors=neighbors)


def _own_ids(
    settings: AgentSettings, runner: Runner
) -> tuple[frozenset[Id], tuple[ParseError, ...]]:
    device, errors = parse_chassis(
        _run_lldpcli(settings, runner, _CHASSIS), source="lldpcli chassis"
    )
    ids = device.ids if device is not None else ()
    return frozenset(one for one in ids if one.kind in _OWN_KINDS), errors


def _run_lldpcli(settings: AgentSettings, runner: Runner, question: tuple[str, ...]) -> bytes:
    socket = ("-u", settings.lldpd_socket) if settings.lldpd_socket else ()
    argv = (settings.lldpcli, *socket, "-f", "json0", *question)
    if runner.find(settings.lldpcli) is None:
        raise SourceAbsent(f"{show(settings.lldpcli)} not found: is lldpd installed?")
    result = runner.run(argv, CommandLimits(settings.deadline_s, settings.max_output_bytes))
    if result.exit_code == 0:
        return result.stdout
    raise _refusal(settings, result)


def _refusal(settings: AgentSettings, result: CommandResult) -> CollectError:
    reason = tail_of(_LOG_PREFIX.sub("", result.stderr))
    if all(part in result.stderr for part in _NO_SOCKET):
        return SourceAbsent(f"lldpd does not run here{reason}")
    return CommandFailed(f"{show(settings.lldpcli)}: exit {result.exit_code}{reason}")
