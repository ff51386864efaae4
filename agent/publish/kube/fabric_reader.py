"""Reads the Fabric object of the cluster, in which the generator names the nodes that sweep."""

from __future__ import annotations

import logging
from typing import Final

from agent.publish.kube.https_client import ApiClient, ApiRequest
from runtime.retry import RefusalStreak
from topology.model.errors import ConfigError, KubeError, KubeNotFound
from topology.reports.fabric_status import FABRIC_NAME, FabricStatus, parse_fabric
from topology.reports.neighbor_report import API_VERSION

log = logging.getLogger(__name__)

# The server answers resource version 0 from its cache; slightly old data does not matter here.
_PATH: Final = f"/apis/{API_VERSION}/fabrics/{FABRIC_NAME}?resourceVersion=0"


class FabricReader:
    """Reads which nodes sweep, and keeps the last answer while the object cannot be read."""

    def __init__(self, server: ApiClient) -> None:
        """Read nothing yet."""
        self._server = server
        self._last = FabricStatus()
        self._problem: str | None = None
        self._refusals = RefusalStreak()

    def latest(self) -> FabricStatus:
        """Return the newest status that could be read; logs a read problem once."""
        if self._server.blocking_error is not None:
            return self._last
        problem, refusal = None, None
        try:
            self._last = parse_fabric(self._server.call(ApiRequest("GET", _PATH)))
        except KubeNotFound:
            self._last = FabricStatus()
        except (KubeError, ConfigError) as error:
            problem, refusal = str(error), error if isinstance(error, KubeError) else None
        is_passing = self._refusals.record(refusal)
        if problem is not None and problem != self._problem:
            level = logging.INFO if is_passing else logging.WARNING
            log.log(level, "fabric unreadable", extra={"error": problem})
        self._problem = None if is_passing else problem
        return self._last
