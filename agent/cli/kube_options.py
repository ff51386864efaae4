"""The options of an agent in a cluster, and its way to the API server made of them.

In a pod none is needed. Elsewhere `--api-server`, `--token-file` and `--ca-file` are what a
kubeconfig file holds, without its format and the programs it may start.
"""

from __future__ import annotations

import os
import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypedDict

import click

from agent.cli.options import Command, NodeOptions, env_var_of, parse_with, select_sweep_mode
from agent.publish.kube.credentials import (
    SERVICE_ACCOUNT_DIR,
    ApiCredentials,
    parse_api_url,
    read_cluster_address,
)
from agent.publish.kube.fabric_reader import FabricReader
from agent.publish.kube.https_client import HttpsApiClient, OnAnswer
from agent.publish.kube.report_writer import ReportWriter
from agent.settings import SweepMode
from runtime.clock import Clock
from runtime.retry import Cooldown, Uniform
from runtime.values import Address


class KubeOptions(TypedDict):
    """The values of the options below, as click hands them over."""

    api_server: Address | None
    token_file: Path
    ca_file: Path


class AllOptions(NodeOptions, KubeOptions):
    """Those and all that describe the node."""


_OPTIONS: Final[tuple[Callable[[Command], Command], ...]] = (
    click.option(
        "--api-server",
        envvar=env_var_of("api-server"),
        callback=parse_with(parse_api_url),
        metavar="URL",
        help="API server for --kube, https://HOST:PORT.  [default: the pod's]",
    ),
    click.option(
        "--token-file",
        envvar=env_var_of("token-file"),
        type=click.Path(dir_okay=False, path_type=Path),
        default=str(SERVICE_ACCOUNT_DIR / "token"),
        show_default=True,
        help="Who the agent is to it; read for each request, since tokens rotate.",
    ),
    click.option(
        "--ca-file",
        envvar=env_var_of("ca-file"),
        type=click.Path(dir_okay=False, path_type=Path),
        default=str(SERVICE_ACCOUNT_DIR / "ca.crt"),
        show_default=True,
        help="Whom the server's certificate must be signed by.",
    ),
)


def kube_options(command: Command) -> Command:
    """Add the options to a command, in the order of their help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class ApiServerAccess:
    """What an agent does with the API server."""

    def __init__(
        self,
        options: AllOptions,
        clock: Clock,
        *,
        period_s: float = 0.0,
        on_answer: OnAnswer | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            options: where it is, and who asks.
            clock: of the rounds.
            period_s: from one round to the next; 0 where there is but one.
            on_answer: is told the code of each answer.

        Raises:
            ConfigError: this is no pod, and no address is named.
        """
        address = options["api_server"] or read_cluster_address(os.environ)
        self._uniform: Uniform = random.SystemRandom().uniform
        self._clock = clock
        self._period_s = period_s
        self._server = HttpsApiClient(
            ApiCredentials(address, options["token_file"], options["ca_file"]),
            self._cooldown(),
            on_answer=on_answer,
        )
        self._is_elected = select_sweep_mode(options) is SweepMode.ELECTED

    def open_report_writer(self, node_name: str) -> ReportWriter:
        """Return where the reports of a node go."""
        return ReportWriter(
            self._server, node_name, self._clock, self._uniform, cooldown=self._cooldown()
        )

    def open_fabric_reader(self) -> FabricReader | None:
        """Return where elections are told, None where none is asked for."""
        return FabricReader(self._server) if self._is_elected else None

    def _cooldown(self) -> Cooldown:
        return Cooldown(self._clock, self._uniform, period_s=self._period_s)
