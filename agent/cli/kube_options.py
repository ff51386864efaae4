"""The options of an agent in a cluster, and the API server that they lead to.

A pod needs none of them. Elsewhere `--api-server`, `--token-file` and `--ca-file` hold what a
kubeconfig file holds, without its format and the programs that it may start.
"""

from __future__ import annotations

import os
import random  # noqa: TID251 - this is an edge: it spreads retries
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import click

from agent.publish.kube.credentials import (
    SERVICE_ACCOUNT_DIR,
    ApiCredentials,
    parse_api_url,
    read_cluster_address,
)
from agent.publish.kube.fabric_reader import FabricReader
from agent.publish.kube.https_client import HttpsApiClient, OnAnswer
from agent.publish.kube.report_writer import ReportWriter
from agent.settings import Option, SweepMode
from runtime.clock import Clock
from runtime.retry import Cooldown, Uniform
from runtime.values import Address

_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeOptions:
    """Where the API server is, and the agent's credentials for it."""

    api_server: Annotated[
        Address | None,
        Option(
            "--api-server",
            "API server for --kube, https://HOST:PORT.  [default: the pod's]",
            parse=parse_api_url,
            metavar="URL",
        ),
    ]
    token_file: Annotated[
        Path,
        Option(
            "--token-file",
            "Token of the agent's service account; read for each request, since tokens rotate.",
            default=str(SERVICE_ACCOUNT_DIR / "token"),
            type=_FILE,
        ),
    ]
    ca_file: Annotated[
        Path,
        Option(
            "--ca-file",
            "Certificate authority that must have signed the server's certificate.",
            default=str(SERVICE_ACCOUNT_DIR / "ca.crt"),
            type=_FILE,
        ),
    ]


class ApiServerAccess:
    """What an agent does with the API server."""

    def __init__(
        self,
        options: KubeOptions,
        clock: Clock,
        *,
        sweep_use: SweepMode,
        period_s: float = 0.0,
        on_answer: OnAnswer | None = None,
    ) -> None:
        """Send no request yet.

        Args:
            options: where the server is, and the credentials.
            clock: of the rounds.
            sweep_use: when this node sweeps.
            period_s: from one round to the next; 0 for a single round.
            on_answer: takes the code of each answer.

        Raises:
            ConfigError: this is not a pod, and no address is given.
        """
        address = options.api_server or read_cluster_address(os.environ)
        self._uniform: Uniform = random.SystemRandom().uniform
        self._clock = clock
        self._period_s = period_s
        self._server = HttpsApiClient(
            ApiCredentials(address, options.token_file, options.ca_file),
            self._cooldown(),
            on_answer=on_answer,
        )
        self._is_elected = sweep_use is SweepMode.ELECTED

    def open_report_writer(self, node_name: str) -> ReportWriter:
        """Return where the reports of a node go."""
        return ReportWriter(
            self._server, node_name, self._clock, self._uniform, cooldown=self._cooldown()
        )

    def open_fabric_reader(self) -> FabricReader | None:
        """Return the reader of elections, None where this node is not elected."""
        return FabricReader(self._server) if self._is_elected else None

    def _cooldown(self) -> Cooldown:
        return Cooldown(self._clock, self._uniform, period_s=self._period_s)
