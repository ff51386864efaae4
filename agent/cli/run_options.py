"""The options of `toponaut-agent run` alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from agent.settings import Option, parse_delay, parse_duration, parse_listen
from runtime.click_types import GivenPath
from runtime.values import Address


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
