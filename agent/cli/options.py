"""The options of commands, and the node and the API clients made of them.

One option for each field of settings that declares one. Each option has an environment variable:
`TOPONAUT_AGENT_` and the option's name in capitals. The variable of an option that can be given
several times holds its values separated by blanks.

A pod needs no option of a cluster. Elsewhere `--api-server`, `--token-file` and `--ca-file` replace
a kubeconfig file: the agent needs no parser for it, and starts no program that it names.
"""

from __future__ import annotations

import logging
import os
import random  # noqa: TID251 - this is an edge: it spreads retries
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import click

from agent.collection import NodeContext
from agent.collectors.frames import SystemInterfaces
from agent.node.command import Runner, command_env
from agent.node.frame_listener import Listener
from agent.publish.kube.credentials import (
    SERVICE_ACCOUNT_DIR,
    ApiCredentials,
    parse_api_url,
    read_cluster_address,
)
from agent.publish.kube.fabric_reader import FabricReader
from agent.publish.kube.https_client import ApiClient, OnAnswer
from agent.publish.kube.report_writer import ReportWriter
from agent.settings import (
    AgentSettings,
    FrameMode,
    FrameSettings,
    Option,
    SweepMode,
    SweepSettings,
    check_node_name,
    parse_delay,
    parse_duration,
    parse_listen,
)
from agent.sweep_schedule import FabricFile
from runtime.click_types import GivenPath, refusing
from runtime.clock import Clock, SystemClock
from runtime.logs import start_logging
from runtime.retry import Cooldown, Uniform
from runtime.stop import Stop
from runtime.values import Address
from topology.model.errors import ConfigError
from topology.model.ids import short_name

_FILE: Final = GivenPath(dir_okay=False)
ENV_PREFIX: Final = "TOPONAUT_AGENT_"

Values = dict[str, Any]
"""The values that click parsed, by the long names of the options with `_` for `-`."""
Callback = Callable[[click.Context, click.Parameter, Any], object]
"""Turns the value that click parsed into the value of the setting."""
Group = TypeVar("Group")
Command = TypeVar("Command", bound=Callable[..., None])


def options_of(*groups: type) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of settings to a command.

    Args:
        groups: dataclasses; the help lists their options in this order, and by their fields.
    """
    settings = [setting for group in groups for setting in _settings_of(group)]

    def decorate(command: Command) -> Command:
        for setting in reversed(settings):
            command = setting.click_option()(command)
        return command

    return decorate


def read_group(group: type[Group], values: Values, **others: object) -> Group:
    """Return settings made of the values that click parsed.

    Args:
        group: the dataclass.
        values: the values of the command's options.
        others: fields without an option, and fields that replace a parsed value.
    """
    own = {
        setting.field: values[setting.parameter]
        for setting in _settings_of(group)
        if setting.group is group and setting.field not in others
    }
    return group(**own, **others)


class _Setting(NamedTuple):
    """A field and its option."""

    group: type
    field: str
    kind: object
    """The field's type."""
    option: Option

    @property
    def parameter(self) -> str:
        """The name that click gives to the value."""
        return self.option.flags.split()[0].lstrip("-").replace("-", "_")

    def click_option(self) -> Callable[[Command], Command]:
        """Return the decorator that adds the option to a command."""
        option, own_env = self.option, ENV_PREFIX + self.parameter.upper()
        shown: dict[str, Any] = {}
        if option.default is not None:
            shown = {"default": option.default, "show_default": True}
        return click.option(
            *option.flags.split(),
            self.parameter,
            envvar=[own_env, option.other_env] if option.other_env else own_env,
            type=self._click_type(),
            is_flag=self.kind is bool,
            multiple=get_origin(self.kind) is tuple and option.parse is None,
            callback=self._callback(),
            metavar=option.metavar,
            help=option.help,
            **shown,
        )

    def _callback(self) -> Callback | None:
        if self.option.parse_each is not None:
            return _parsed_by(_each_by(self.option.parse_each))
        return _parsed_by(self.option.parse) if self.option.parse is not None else None

    def _click_type(self) -> Any:  # noqa: ANN401 - click takes many
        if self.option.choices:
            return click.Choice(self.option.choices)
        if self.option.type is None and Path in (self.kind, *get_args(self.kind)):
            return GivenPath()
        return self.option.type


def _settings_of(group: type) -> Iterator[_Setting]:
    """Yield the fields that declare an option, with those of nested groups in their place."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        hint = hints[field.name]
        for declared in getattr(hint, "__metadata__", ()):
            if isinstance(declared, Option):
                yield _Setting(group, field.name, hint.__origin__, declared)
            elif isinstance(declared, type) and is_dataclass(declared):
                yield from _settings_of(declared)


def _each_by(parse: Callable[[str], object]) -> Callable[[Iterable[str]], object]:
    """Return a parser of the texts of an option that can be given several times."""
    return lambda texts: tuple(map(parse, texts))


def _parsed_by(parse: Callable[[Any], object]) -> Callback:
    """Return a callback that parses an option's value."""
    refused = refusing(parse)
    return lambda _context, _parameter, value: None if value is None else refused(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The folder of reports, the times of rounds, and the addresses of probes and metrics."""

    publish: Annotated[
        Path | None,
        Option(
            "--publish",
            "Folder for this node's reports, one file each.  [default: neighborreports/ in "
            "--store]",
            type=GivenPath(file_okay=False),
        ),
    ]
    period_s: Annotated[
        float,
        Option(
            "--period",
            "Time from one collection to the next.",
            default="1m",
            parse=parse_duration,
        ),
    ]
    jitter_s: Annotated[
        float,
        Option(
            "--jitter",
            "Maximum random time added to each period, so that nodes do not all write at the same "
            "moment.",
            default="5s",
            parse=parse_delay,
        ),
    ]
    health_listen: Annotated[
        Address | None,
        Option(
            "--health-listen",
            "Address that serves /livez, /readyz and /startupz; :8081 listens on all addresses.  "
            "[default: not served]",
            parse=parse_listen,
            metavar="HOST:PORT",
        ),
    ]
    metrics_listen: Annotated[
        Address | None,
        Option(
            "--metrics-listen",
            "Address that serves /metrics for Prometheus.  [default: not served]",
            parse=parse_listen,
            metavar="HOST:PORT",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeOptions:
    """The API server's address, and the agent's credentials for it."""

    api_server: Annotated[
        Address | None,
        Option(
            "--api-server",
            "API server for --kube, https://HOST:PORT.  [default: the server of the pod's cluster]",
            parse=parse_api_url,
            metavar="URL",
        ),
    ]
    token_file: Annotated[
        Path,
        Option(
            "--token-file",
            "Token of the agent's service account; read for each request, because tokens rotate.",
            default=str(SERVICE_ACCOUNT_DIR / "token"),
            type=_FILE,
        ),
    ]
    ca_file: Annotated[
        Path,
        Option(
            "--ca-file",
            "CA file that verifies the API server's certificate.",
            default=str(SERVICE_ACCOUNT_DIR / "ca.crt"),
            type=_FILE,
        ),
    ]


class ApiServerAccess:
    """Makes the agent's clients of the API server: the report writer and the Fabric reader."""

    def __init__(
        self,
        options: KubeOptions,
        clock: Clock,
        *,
        sweep_mode: SweepMode,
        period_s: float = 0.0,
        on_answer: OnAnswer | None = None,
    ) -> None:
        """Send no request yet.

        Args:
            options: the server's address and the credentials.
            clock: the clock of the rounds.
            sweep_mode: when this node sweeps.
            period_s: from one round to the next; 0 for a single round.
            on_answer: records the status code of each answer.

        Raises:
            ConfigError: the agent does not run in a pod, and no address is given.
        """
        address = options.api_server or read_cluster_address(os.environ)
        self._uniform: Uniform = random.SystemRandom().uniform
        self._clock = clock
        self._period_s = period_s
        self._server = ApiClient(
            ApiCredentials(address, options.token_file, options.ca_file),
            self._cooldown(),
            on_answer=on_answer,
        )
        self._is_elected = sweep_mode is SweepMode.ELECTED

    def open_report_writer(self, node_name: str) -> ReportWriter:
        """Return the destination of a node's reports."""
        return ReportWriter(
            self._server, node_name, self._clock, self._uniform, cooldown=self._cooldown()
        )

    def open_fabric_reader(self) -> FabricReader | None:
        """Return the reader of elections, or None if this node needs no election."""
        return FabricReader(self._server) if self._is_elected else None

    def _cooldown(self) -> Cooldown:
        return Cooldown(self._clock, self._uniform, period_s=self._period_s)


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
    settings, clock = _build_settings(values, source), SystemClock()
    listener = Listener(SystemInterfaces(settings.sysfs_root), clock) if settings.frames else None
    stop = Stop()
    runner = Runner(command_env(os.environ, source.pass_env), stop)
    return NodeContext(settings, runner, clock, listener, stop=stop)


def _build_settings(values: Values, source: SourceOptions) -> AgentSettings:
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
