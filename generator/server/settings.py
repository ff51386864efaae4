"""The settings of a server: its data, how it writes, its ports and its callers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from generator.kube.access import ClusterAccess
from generator.objects.plane_config import PlaneChoice
from generator.rpc.auth.tls import TlsFiles


class SwitchPollSettings(NamedTuple):
    """Which switches are walked, and how."""

    config: Path
    """The file that lists the switches."""
    period_s: float
    """The time from one walk of a switch to the next."""
    deadline_s: float
    """The limit of the walk of one switch."""


class ReplicaSettings(NamedTuple):
    """The cluster, and the name of this replica."""

    access: ClusterAccess
    namespace: str | None
    """The namespace of the Lease; None: the namespace of this pod."""
    identity: str | None
    """Name of this replica, without its random suffix; None: the pod's name, else the host's."""


class ServerSettings(NamedTuple):
    """The data of a server, and how it is served."""

    folder: Path
    """Not used for a cluster."""
    cluster: ReplicaSettings | None
    """None: the folder is served."""
    nodes: Path | None
    """The inventory file; None: there is none."""
    period_s: float
    """The time from one round to the next."""
    planes: PlaneChoice | None
    """The plane of the tree; None: as the Fabric object says."""
    switches: SwitchPollSettings | None
    """None: no switch is walked."""
    is_dry: bool
    """Whether planned changes are logged and not written."""
    listen: str
    """`HOST:PORT` of the gRPC port."""
    ready_file: Path | None
    """Receives the bound address once the server is ready; None: no such file."""
    history: Path | None = None
    """The file of the history; None: the one in the folder, and none for a cluster."""


class EndpointSettings(NamedTuple):
    """The metrics and health ports, and the security of the gRPC port."""

    metrics: str | None = None
    """`HOST:PORT`; None: no such port."""
    health: str | None = None
    """`HOST:PORT`; None: no such port."""
    web: str | None = None
    """`HOST:PORT` of the page; None: no such port."""
    tls: TlsFiles | None = None
    """None: only callers on this machine can connect, and they need no credentials."""
    audience: str | None = None
    """The audience that tokens must have; None: callers need no token."""
