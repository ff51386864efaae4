"""The options that every command of the agent takes, and the settings made of them.

Each option has a variable of its own, `TOPONAUT_AGENT_` and the option's name in capitals; one
that can be given several times takes them from its variable separated by blanks.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypedDict, TypeVar

import click

from agent.collection import NodeContext
from agent.collectors.frames import SystemInterfaces
from agent.node.command import ProcessRunner, command_env
from agent.node.frame_listener import Listener
from agent.settings import (
    AgentSettings,
    FrameMode,
    FrameSettings,
    SweepMode,
    SweepSettings,
    check_node_name,
    parse_argv,
    parse_delay,
    parse_duration,
    parse_size,
    parse_subnet,
)
from agent.sweep_schedule import FabricFile
from runtime.clock import SystemClock
from runtime.logs import start_logging
from runtime.stop import Stop
from topology.model.errors import ConfigError
from topology.model.facts import DeviceKind
from topology.model.ids import short_name

ENV_PREFIX: Final = "TOPONAUT_AGENT_"

Value = TypeVar("Value")
Command = Callable[..., None]
Callback = Callable[[click.Context, click.Parameter, str | None], Value | None]


class NodeOptions(TypedDict):
    """The values of the options below, as click hands them over."""

    node_name: str | None
    hostname: str | None
    kind: str
    sysfs_root: Path
    proc_root: Path
    interfaces: tuple[str, ...]
    lldpcli: str
    lldpd_socket: str | None
    ethtool: str
    nvidia_smi: str
    frames: str
    listen_for: float
    deadline: float
    max_output: int
    pass_env: tuple[str, ...]
    store: Path | None
    kube: bool
    sweep: str | None
    sweep_every: float
    sweep_command: tuple[str, ...]
    sweep_subnet: str | None
    sweep_deadline: float
    sweep_max_output: int
    log_format: str | None
    verbose: bool


def env_var_of(option: str) -> str:
    """Return the variable of an option, `TOPONAUT_AGENT_NODE_NAME` of `--node-name`."""
    return ENV_PREFIX + option.lstrip("-").replace("-", "_").upper()


def parse_with(parse: Callable[[str], Value]) -> Callback[Value]:
    """Return a callback that turns an option's text into its value, or a usage error."""

    def parse_option(
        _context: click.Context, _parameter: click.Parameter, text: str | None
    ) -> Value | None:
        try:
            return None if text is None else parse(text)
        except ConfigError as error:
            raise click.BadParameter(str(error)) from error

    return parse_option


_OPTIONS: Final[tuple[Callable[[Command], Command], ...]] = (
    click.option(
        "--node-name",
        envvar=[env_var_of("node-name"), "NODE_NAME"],
        callback=parse_with(check_node_name),
        help="Name of this node in the cluster.  [default: the short host name]",
    ),
    click.option(
        "--hostname",
        envvar=env_var_of("hostname"),
        help="Host name that neighbors may know this node by.  [default: the node's name]",
    ),
    click.option(
        "--kind",
        envvar=env_var_of("kind"),
        type=click.Choice([DeviceKind.HOST.value, DeviceKind.SWITCH.value]),
        default=DeviceKind.HOST.value,
        show_default=True,
        help="What the agent runs on; a switch is not one of the cluster's nodes.",
    ),
    click.option(
        "--sysfs-root",
        envvar=env_var_of("sysfs-root"),
        default="/sys",
        show_default=True,
        type=click.Path(path_type=Path),
        help="Where sysfs is mounted.",
    ),
    click.option(
        "--proc-root",
        envvar=env_var_of("proc-root"),
        default="/proc",
        show_default=True,
        type=click.Path(path_type=Path),
        help="Where proc is mounted.",
    ),
    click.option(
        "--interfaces",
        envvar=env_var_of("interfaces"),
        multiple=True,
        metavar="PATTERN",
        help="Virtual interfaces that count as ports too, such as 'eth*'. Repeatable.",
    ),
    click.option(
        "--lldpcli",
        envvar=env_var_of("lldpcli"),
        default="lldpcli",
        show_default=True,
        help="The lldpcli program; of the same version as the lldpd it asks.",
    ),
    click.option(
        "--lldpd-socket",
        "-u",
        envvar=env_var_of("lldpd-socket"),
        help="Socket of lldpd.  [default: lldpcli's own]",
    ),
    click.option(
        "--ethtool",
        envvar=env_var_of("ethtool"),
        default="ethtool",
        show_default=True,
        help="The ethtool program; asked only about cards whose firmware may eat LLDP frames.",
    ),
    click.option(
        "--nvidia-smi",
        envvar=env_var_of("nvidia-smi"),
        default="nvidia-smi",
        show_default=True,
        help="The nvidia-smi program; tells which NVLink domain the GPUs are in.",
    ),
    click.option(
        "--frames",
        envvar=env_var_of("frames"),
        type=click.Choice([use.value for use in FrameMode]),
        default=FrameMode.AUTO.value,
        show_default=True,
        help="When to listen to LLDP frames itself: auto is where no lldpd runs. Nothing is sent.",
    ),
    click.option(
        "--listen-for",
        envvar=env_var_of("listen-for"),
        default="31s",
        show_default=True,
        callback=parse_with(parse_delay),
        help="How long to listen before telling who was heard; frames come every 30 s. "
        "0s listens not at all.",
    ),
    click.option(
        "--deadline",
        envvar=env_var_of("deadline"),
        default="10s",
        show_default=True,
        callback=parse_with(parse_duration),
        help="How long a command may run; the sweep has its own.",
    ),
    click.option(
        "--max-output",
        envvar=env_var_of("max-output"),
        default="16MiB",
        show_default=True,
        callback=parse_with(parse_size),
        help="How much a command may print; the sweep has its own.",
    ),
    click.option(
        "--pass-env",
        envvar=env_var_of("pass-env"),
        multiple=True,
        metavar="VARIABLE",
        help="Variable that commands may see beside PATH. Repeatable.",
    ),
    click.option(
        "--store",
        envvar=env_var_of("store"),
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of the generator's store, in which fabrics/ tells who sweeps.",
    ),
    click.option(
        "--kube",
        envvar=env_var_of("kube"),
        is_flag=True,
        help="Reports are objects of the cluster that this node is in, and so is what tells who "
        "sweeps.",
    ),
    click.option(
        "--sweep",
        envvar=env_var_of("sweep"),
        type=click.Choice([use.value for use in SweepMode]),
        help="When to sweep the InfiniBand subnets that this node is in; elected is where the "
        "store, or the cluster, says so.  [default: elected with --store, else never]",
    ),
    click.option(
        "--sweep-every",
        envvar=env_var_of("sweep-every"),
        default="5m",
        show_default=True,
        callback=parse_with(parse_delay),
        help="Time from one sweep to the next at least; 0s: with each collection.",
    ),
    click.option(
        "--sweep-command",
        envvar=env_var_of("sweep-command"),
        default="ibnetdiscover",
        show_default=True,
        callback=parse_with(parse_argv),
        help="What sweeps, with its arguments, such as 'ibnetdiscover -C mlx5_0 -P 1'; "
        "words and quotes as in a shell, but no shell. Elected, -C and -P are added.",
    ),
    click.option(
        "--sweep-subnet",
        envvar=env_var_of("sweep-subnet"),
        callback=parse_with(parse_subnet),
        help="Prefix of the subnet, 16 hex digits.  [default: of the local port's GID]",
    ),
    click.option(
        "--sweep-deadline",
        envvar=env_var_of("sweep-deadline"),
        default="2m",
        show_default=True,
        callback=parse_with(parse_duration),
        help="How long a sweep may run.",
    ),
    click.option(
        "--sweep-max-output",
        envvar=env_var_of("sweep-max-output"),
        default="256MiB",
        show_default=True,
        callback=parse_with(parse_size),
        help="How much a sweep may print.",
    ),
    click.option(
        "--log-format",
        envvar=env_var_of("log-format"),
        type=click.Choice(["text", "json"]),
        help="Of the log on stderr.  [default: text on a terminal, else json]",
    ),
    click.option("--verbose", "-v", envvar=env_var_of("verbose"), is_flag=True, help="Log more."),
)


def node_options(command: Command) -> Command:
    """Add to a command the options that every command takes, in the order of their help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_node_context(options: NodeOptions) -> NodeContext:
    """Start the log and return the node as the options describe it.

    Raises:
        click.UsageError: the machine's own name cannot be a node's.
    """
    start_logging(
        options["log_format"], level=logging.DEBUG if options["verbose"] else logging.INFO
    )
    env = command_env(os.environ, options["pass_env"])
    settings, clock = _build_settings(options), SystemClock()
    listener = Listener(SystemInterfaces(settings.sysfs_root), clock) if settings.frames else None
    stop = Stop()
    return NodeContext(settings, ProcessRunner(env, stop), clock, listener, stop=stop)


def select_sweep_mode(options: NodeOptions) -> SweepMode:
    """Return when this node sweeps.

    Raises:
        click.UsageError: where it is elected, but nobody tells that.
    """
    default = SweepMode.ELECTED if options["store"] else SweepMode.NEVER
    use = SweepMode(options["sweep"] or default)
    if use is SweepMode.ELECTED and options["store"] is None and not options["kube"]:
        raise click.UsageError("--sweep elected needs --store or --kube, which tells who is")
    return use


def open_fabric(options: NodeOptions) -> FabricFile | None:
    """Return where the store tells elections, None where none is asked for."""
    store = options["store"]
    return FabricFile(store) if store and select_sweep_mode(options) is SweepMode.ELECTED else None


def _build_settings(options: NodeOptions) -> AgentSettings:
    try:
        node_name = options["node_name"] or check_node_name(short_name(socket.gethostname()))
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    sweep = SweepSettings(
        command=options["sweep_command"],
        deadline_s=options["sweep_deadline"],
        max_output_bytes=options["sweep_max_output"],
        subnet=options["sweep_subnet"],
        interval_s=options["sweep_every"],
    )
    is_sweeping = select_sweep_mode(options) is not SweepMode.NEVER
    use, listen_s = FrameMode(options["frames"]), options["listen_for"]
    is_listening = use is not FrameMode.NEVER and listen_s > 0
    return AgentSettings(
        node_name=node_name,
        hostname=options["hostname"] or node_name,
        sysfs_root=options["sysfs_root"],
        interfaces=options["interfaces"],
        lldpcli=options["lldpcli"],
        lldpd_socket=options["lldpd_socket"],
        deadline_s=options["deadline"],
        max_output_bytes=options["max_output"],
        sweep=sweep if is_sweeping else None,
        kind=DeviceKind(options["kind"]),
        frames=FrameSettings(use, listen_s) if is_listening else None,
        proc_root=options["proc_root"],
        ethtool=options["ethtool"],
        nvidia_smi=options["nvidia_smi"],
    )
