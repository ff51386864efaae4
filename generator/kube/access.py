"""Which cluster to use. A module of its own, so that naming a cluster does not load the client."""

from __future__ import annotations

from typing import NamedTuple


class ClusterAccess(NamedTuple):
    """A cluster and the credentials for it; fields that are None follow kubectl's rules."""

    kubeconfig: str | None = None
    """A file, or several files separated by colons."""
    context: str | None = None
