"""The options of an agent in a cluster, and the API clients made of them.

A pod needs none of these options. Elsewhere `--api-server`, `--token-file` and `--ca-file` replace
a kubeconfig file: the agent needs no parser for it, and starts no program that it names.
"""

from __future__ import annotations

import os
import random  # noqa: TID251 - this is an edge: it spreads retries
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

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
from runtime.click_types import GivenPath
from runtime.clock import Clock
from runtime.retry import Cooldown, Uniform
from runtime.values import Address

_FILE: Final = GivenPath(dir_okay=False)


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
        self._server = HttpsApiClient(
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
