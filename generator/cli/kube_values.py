"""The cluster to read, from the values of its options."""

from __future__ import annotations

from typing import Any

import click

from generator.kube.access import ClusterAccess


def parse_access(options: dict[str, Any]) -> ClusterAccess | None:
    """Remove the options of `kube_options` from a command's parameters, and return the cluster.

    Returns None without --kube.

    Raises:
        click.UsageError: --kubeconfig or --context is given without --kube.
    """
    access = ClusterAccess(options.pop("kubeconfig"), options.pop("context"))
    if options.pop("kube"):
        return access
    if any(access):
        raise click.UsageError("--kubeconfig and --context need --kube")
    return None
