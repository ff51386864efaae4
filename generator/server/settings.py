"""The settings of a server: what it serves, how, on which ports and to which callers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from generator.kube.access import ClusterAccess
from generator.objects.plane_config import PlaneChoice
from generator.rpc.auth.tls import TlsFiles


class SwitchPollSettings(NamedTuple):
    """Which switches are walked, and how."""

    config: Path
    period_s: float
    deadline_s: float


class ReplicaSettings(NamedTuple):
    """Which cluster is served, and as whom among its replicas."""

    access: ClusterAccess
    namespace: str | None
    """Of the Lease; None: the one that the credentials or the pod name."""
    identity: str | None
    """None: the pod's name, and a part that is drawn."""


class ServerSettings(NamedTuple):
    """What is served, and how."""

    folder: Path
    """Means nothing where a cluster is served."""
    cluster: ReplicaSettings | None
    nodes: Path | None
    period_s: float
    planes: PlaneChoice | None
    """None: what the Fabric object says."""
    switches: SwitchPollSettings | None
    is_dry: bool
    listen: str
    ready_file: Path | None


class EndpointSettings(NamedTuple):
    """Where to serve what, and to whom."""

    metrics: str | None = None
    """`HOST:PORT`; None: nowhere."""
    health: str | None = None
    tls: TlsFiles | None = None
    """None: callers on this machine are not asked who they are, and there are no others."""
    audience: str | None = None
    """That tokens must be made for; None: no token is asked for."""
