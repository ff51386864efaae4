"""The options of commands, and the node and the API clients made of them.

A pod needs no option of a cluster. Elsewhere `--api-server`, `--token-file` and `--ca-file` replace
a kubeconfig file: the agent needs no parser for it, and starts no program that it names.
"""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Final, NamedTuple

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
from agent.publish.kube.https_client import ApiClient, OnAnswer
from agent.settings import (
    AgentSettings,
    FrameMode,
    SweepMode,
    SweepSettings,
    check_node_name,
    parse_delay,
    parse_duration,
    parse_listen,
    parsed,
)
from agent.sweep_schedule import ElectionReader, read_cluster_fabric, read_fabric_file
from runtime.clock import SystemClock
from runtime.logs import start_logging
from runtime.options import Choice, GivenPath, option
from runtime.retry import Cooldown
from runtime.stop import Stop
from runtime.values import Address
from topology.model.errors import ConfigError
from topology.model.ids import short_name

_FILE: Final = GivenPath(dir_okay=False)
_FOLDER: Final = GivenPath(file_okay=False)


class RunOptions(NamedTuple):
    """The folder of reports, the times of rounds, and the addresses of probes and metrics."""

    publish: Path | None = option(
        "Folder for this node's reports, one file each.  [default: neighborreports/ in --store]",
        path=_FOLDER,
    )
    period_s: float = parsed(
        "Time from one collection to the next.", "--period", default="1m", by=parse_duration
    )
    jitter_s: float = parsed(
        "Maximum random time added to each period, so that nodes do not all write at the same "
        "moment.",
        "--jitter",
        default="5s",
        by=parse_delay,
    )
    health_listen: Address | None = parsed(
        "Address that serves /livez, /readyz and /startupz; :8081 listens on all addresses.  "
        "[default: not served]",
        metavar="HOST:PORT",
        by=parse_listen,
    )
    metrics_listen: Address | None = parsed(
        "Address that serves /metrics for Prometheus.  [default: not served]",
        metavar="HOST:PORT",
        by=parse_listen,
    )


class KubeOptions(NamedTuple):
    """The API server's address, and the agent's credentials for it."""

    api_server: Address | None = parsed(
        "API server for --kube, https://HOST:PORT.  [default: the server of the pod's cluster]",
        metavar="URL",
        by=parse_api_url,
    )
    token_file: Path = option(
        "Token of the agent's service account; read for each request, because tokens rotate.",
        default=str(SERVICE_ACCOUNT_DIR / "token"),
        path=_FILE,
    )
    ca_file: Path = option(
        "CA file that verifies the API server's certificate.",
        default=str(SERVICE_ACCOUNT_DIR / "ca.crt"),
        path=_FILE,
    )

    def open_client(self, cooldown: Cooldown, on_answer: OnAnswer | None = None) -> ApiClient:
        """Return a client of the API server; sends no request yet.

        Raises:
            ConfigError: the agent does not run in a pod, and no address is given.
        """
        address = self.api_server or read_cluster_address(os.environ)
        credentials = ApiCredentials(address, self.token_file, self.ca_file)
        return ApiClient(credentials, cooldown, on_answer=on_answer)


class SourceOptions(NamedTuple):
    """The environment of commands, and the source of elections."""

    pass_env: tuple[str, ...] = option(
        "Environment variable to pass to commands, in addition to PATH. Repeatable.",
        metavar="VARIABLE",
    )
    store: Path | None = option(
        "Folder of the generator's store; objects in its fabrics/ name the node that sweeps.",
        path=_FOLDER,
    )
    kube: bool = option(
        "Write reports to the API server of this node's cluster, and read from it which node "
        "sweeps."
    )
    sweep: SweepMode | None = option(
        "When to sweep the InfiniBand subnets of this node; elected sweeps if the store or the "
        "cluster elects the node.  [default: elected with --store, otherwise never]"
    )

    def sweep_mode(self) -> SweepMode:
        """Return when this node sweeps.

        Raises:
            ConfigError: it sweeps if elected, but the options name no source of elections.
        """
        mode = self.sweep or (SweepMode.ELECTED if self.store else SweepMode.NEVER)
        if mode is SweepMode.ELECTED and self.store is None and not self.kube:
            raise ConfigError("--sweep elected needs --store or --kube to read elections")
        return mode

    def open_elections(self, server: ApiClient | None) -> ElectionReader | None:
        """Return the reader of elections, or None if this node needs none.

        Args:
            server: the client of the cluster's API server; None reads the store.
        """
        if self.sweep_mode() is not SweepMode.ELECTED:
            return None
        if server is not None:
            return read_cluster_fabric(server)
        return read_fabric_file(self.store) if self.store else None


class LogOptions(NamedTuple):
    """The format and the level of the log."""

    log_format: str | None = option(
        "Format of the log on stderr.  [default: text on a terminal, otherwise json]",
        type=Choice(["text", "json"]),
    )
    verbose: bool = option("Log debug messages too.", "--verbose", "-v")


class NodeOptions(NamedTuple):
    """The options of every command, in the order of the help."""

    settings: AgentSettings
    source: SourceOptions
    sweep: SweepSettings
    log: LogOptions

    def open_node(self) -> NodeContext:
        """Start the log and return the node.

        Raises:
            ConfigError: this machine's name is not valid for a node, or options conflict.
        """
        log = self.log
        start_logging(log.log_format, level=logging.DEBUG if log.verbose else logging.INFO)
        settings, clock, stop = self._complete_settings(), SystemClock(), Stop()
        interfaces = SystemInterfaces(settings.sysfs_root)
        listener = Listener(interfaces, clock) if settings.frames else None
        runner = Runner(command_env(os.environ, self.source.pass_env), stop)
        return NodeContext(settings, runner, clock, listener, stop=stop)

    def _complete_settings(self) -> AgentSettings:
        """Return the settings with the name of this machine, and without what is off."""
        given = self.settings
        name = given.node_name or check_node_name(short_name(socket.gethostname()))
        is_sweeping = self.source.sweep_mode() is not SweepMode.NEVER
        frames = given.frames
        is_listening = frames and frames.mode is not FrameMode.NEVER and frames.listen_s > 0
        return given._replace(
            node_name=name,
            hostname=given.hostname or name,
            frames=frames if is_listening else None,
            sweep=self.sweep if is_sweeping else None,
        )
