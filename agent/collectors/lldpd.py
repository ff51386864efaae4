"""Neighbors that lldpd hears, read with `lldpcli -f json0`.

The collector never uses the plain `json` form, in which a neighbor's name can forge entries.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agent.collectors.probe import (
    CollectedFacts,
    Collector,
    SourceAbsent,
    SourceCutOff,
    build_heard_port,
    restore_heard_ports,
)
from agent.node.command import CommandResult, Runner, tail_of
from agent.node.mounts import explain_deleted_mount
from agent.node.unix_sockets import explain_denial, find_listening
from agent.settings import AgentSettings
from topology.model.errors import CollectError, CommandFailed, ParseError, list_some, show
from topology.model.facts import Device, Source
from topology.model.ids import Id, IdKind
from topology.sources.lldp.lldpcli import parse_chassis, parse_neighbors

_NAME: Final = "lldpd"
_SOCKET: Final = "/run/lldpd.socket"
"""The default of lldpcli, unless lldpd was built otherwise."""
_MAX_SHOWN: Final = 3
_NO_SOCKET: Final = ("unable to connect to socket", "No such file or directory")
_DENIED: Final = re.compile(r"unable to connect to socket (.+): Permission denied")
# The prefix of lldpcli's own messages; the time in it would make equal outcomes differ.
_LOG_PREFIX: Final = re.compile(r"^\S+T\S+ \[\w+/\w+\] ", re.MULTILINE)
_OWN_KINDS: Final = frozenset({IdKind.CHASSIS_ID, IdKind.HOSTNAME})
_VERSION: Final = re.compile(rb"\d[\w.+~-]{0,40}\Z", re.ASCII)
_NEIGHBORS: Final = ("show", "neighbors", "details")
_CHASSIS: Final = ("show", "chassis")


def find_absence(settings: AgentSettings, runner: Runner) -> SourceAbsent | None:
    """Return why lldpd does not answer, or None if it does."""
    try:
        _run_lldpcli(settings, runner, _CHASSIS)
    except CollectError as error:
        return SourceAbsent(str(error))
    return None


def read_version(settings: AgentSettings, runner: Runner) -> str:
    """Return the version that lldpcli prints; empty if it prints none."""
    limits = settings.limits
    try:
        result = runner.run((settings.lldpcli, "-v"), limits)
    except CollectError:
        return ""
    words = result.stdout.split()
    return words[-1].decode() if words and _VERSION.match(words[-1]) else ""


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the neighbors of each port, and the chassis id that this node sends itself.

    Raises:
        SourceAbsent: lldpd is not installed, or not running; expected if one listens elsewhere.
        SourceCutOff: the folder of its socket was deleted after it was mounted here.
        CollectError: lldpd runs but does not answer, or answers in another form.
    """
    heard = parse_neighbors(_run_lldpcli(settings, runner, _NEIGHBORS), source="lldpcli neighbors")
    if heard.errors and not heard.ports:
        raise CollectError(f"nothing readable: {heard.errors[0]}")
    ids, errors = _own_ids(settings, runner)
    ports = tuple(build_heard_port(name, neighbors) for name, neighbors in heard.ports)
    return CollectedFacts(
        ids=ids,
        ports=ports,
        errors=(*heard.errors, *errors),
        note="" if ports else "no neighbor heard",
    )


def restore(device: Device) -> CollectedFacts:
    """Return the facts of lldpd in a report."""
    return CollectedFacts(
        # Every report has the node's configured name, whether lldpd reported it or not.
        ids=frozenset(
            id_ for id_ in device.ids if id_.kind in _OWN_KINDS and id_.value != device.name
        ),
        ports=restore_heard_ports(device, frozenset(Source) - {Source.IB}),
    )


COLLECTOR: Final = Collector(collect, find_absence, restore)


def _own_ids(
    settings: AgentSettings, runner: Runner
) -> tuple[frozenset[Id], tuple[ParseError, ...]]:
    device, errors = parse_chassis(
        _run_lldpcli(settings, runner, _CHASSIS), source="lldpcli chassis"
    )
    ids = device.ids if device is not None else ()
    return frozenset(id_ for id_ in ids if id_.kind in _OWN_KINDS), errors


def _run_lldpcli(settings: AgentSettings, runner: Runner, subcommand: tuple[str, ...]) -> bytes:
    socket = ("-u", settings.lldpd_socket) if settings.lldpd_socket else ()
    argv = (settings.lldpcli, *socket, "-f", "json0", *subcommand)
    if runner.find(settings.lldpcli) is None:
        reason = f"{show(settings.lldpcli)} not found: is lldpd installed?"
        raise SourceAbsent(reason, _find_evidence(settings))
    result = runner.run(argv, settings.limits)
    if result.exit_code == 0:
        return result.stdout
    raise _refusal(settings, result)


def _refusal(settings: AgentSettings, result: CommandResult) -> CollectError:
    reason = tail_of(_LOG_PREFIX.sub("", result.stderr))
    if all(part in result.stderr for part in _NO_SOCKET):
        socket, what = settings.lldpd_socket or _SOCKET, "the socket of a restarted lldpd"
        deletion = explain_deleted_mount(socket, what, proc_root=settings.proc_root)
        if deletion:
            return SourceCutOff(deletion)
        return SourceAbsent(f"lldpd does not run here{reason}", _find_evidence(settings))
    denied = _DENIED.search(result.stderr)
    why = explain_denial(Path(denied[1])) if denied else ""
    return CommandFailed(
        f"{show(settings.lldpcli)}: exit {result.exit_code}{reason}{why and f'; {why}'}"
    )


def _find_evidence(settings: AgentSettings) -> str:
    """Return where an lldpd seems to listen; empty if no socket is seen.

    Outside the node's network namespace, only the folder of the configured socket shows sockets.
    """
    heard = find_listening(_NAME, settings.proc_root)
    if not heard and settings.lldpd_socket:
        heard = _list_sockets(Path(settings.lldpd_socket).parent)
    return f"a socket is at {list_some(map(show, heard), _MAX_SHOWN)}" if heard else ""


def _list_sockets(folder: Path) -> tuple[str, ...]:
    try:
        files = [file for file in folder.iterdir() if _NAME in file.name and file.is_socket()]
    except OSError:
        return ()
    return tuple(sorted(map(str, files)))
