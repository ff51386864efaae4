"""The options that every command takes, and the node made of them."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import click

from agent.cli.options import Values, read_group
from agent.collection import NodeContext
from agent.collectors.frames import SystemInterfaces
from agent.node.command import ProcessRunner, command_env
from agent.node.frame_listener import Listener
from agent.settings import (
    AgentSettings,
    FrameMode,
    FrameSettings,
    Option,
    SweepMode,
    SweepSettings,
    check_node_name,
)
from agent.sweep_schedule import FabricFile
from runtime.click_types import GivenPath
from runtime.clock import SystemClock
from runtime.logs import start_logging
from runtime.stop import Stop
from topology.model.errors import ConfigError
from topology.model.ids import short_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The environment of commands, and the source of elections."""

    pass_env: Annotated[
        tuple[str, ...],
        Option(
            "--pass-env",
            "Environment variable to pass to commands, in addition to PATH. Repeatable.",
            metavar="VARIABLE",
        ),
    ]
    store: Annotated[
        Path | None,
        Option(
            "--store",
            "Folder of the generator's store; objects in its fabrics/ name the node that sweeps.",
            type=GivenPath(file_okay=False),
        ),
    ]
    kube: Annotated[
        bool,
        Option(
            "--kube",
            "Write reports to the API server of this node's cluster, and read from it which node "
            "sweeps.",
        ),
    ]
    sweep: Annotated[
        SweepMode | None,
        Option(
            "--sweep",
            "When to sweep the InfiniBand subnets of this node; elected sweeps if the store or the "
            "cluster elects the node.  [default: elected with --store, otherwise never]",
            parse=SweepMode,
            choices=[mode.value for mode in SweepMode],
        ),
    ]

    def sweep_mode(self) -> SweepMode:
        """Return when this node sweeps.

        Raises:
            click.UsageError: it sweeps if elected, but the options name no source of elections.
        """
        mode = self.sweep or (SweepMode.ELECTED if self.store else SweepMode.NEVER)
        if mode is SweepMode.ELECTED and self.store is None and not self.kube:
            raise click.UsageError("--sweep elected needs --store or --kube to read elections")
        return mode

    def fabric_file(self) -> FabricFile | None:
        """Return the file of the store with the elections, or None if none are needed."""
        if self.store is None or self.sweep_mode() is not SweepMode.ELECTED:
            return None
        return FabricFile(self.store)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The format and the level of the log."""

    log_format: Annotated[
        str | None,
        Option(
            "--log-format",
            "Format of the log on stderr.  [default: text on a terminal, otherwise json]",
            choices=("text", "json"),
        ),
    ]
    verbose: Annotated[bool, Option("--verbose -v", "Log debug messages too.")]


NODE_OPTIONS: Final = (AgentSettings, SourceOptions, SweepSettings, LogOptions)
"""In the order of the help."""


def open_node(values: Values) -> NodeContext:
    """Start the log and return the node that the options describe.

    Raises:
        click.UsageError: this machine's name is not valid for a node, or options conflict.
    """
    log = read_group(LogOptions, values)
    start_logging(log.log_format, level=logging.DEBUG if log.verbose else logging.INFO)
    source = read_group(SourceOptions, values)
    settings, clock = _settings_of(values, source), SystemClock()
    listener = Listener(SystemInterfaces(settings.sysfs_root), clock) if settings.frames else None
    stop = Stop()
    runner = ProcessRunner(command_env(os.environ, source.pass_env), stop)
    return NodeContext(settings, runner, clock, listener, stop=stop)


def _settings_of(values: Values, source: SourceOptions) -> AgentSettings:
    try:
        node_name = values["node_name"] or check_node_name(short_name(socket.gethostname()))
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    is_sweeping = source.sweep_mode() is not SweepMode.NEVER
    frames = read_group(FrameSettings, values)
    is_listening = frames.mode is not FrameMode.NEVER and frames.listen_s > 0
    return read_group(
        AgentSettings,
        values,
        node_name=node_name,
        hostname=values["hostname"] or node_name,
        frames=frames if is_listening else None,
        sweep=read_group(SweepSettings, values) if is_sweeping else None,
    )
