"""Which cluster is meant; apart from `cluster`, so that naming one does not load a client."""

from __future__ import annotations

from typing import NamedTuple


class ClusterAccess(NamedTuple):
    """A cluster, and as whom to ask it; where nothing is said, as kubectl finds it."""

    kubeconfig: str | None = None
    """A file, or several with colons between."""
    context: str | None = None
