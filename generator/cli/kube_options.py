"""The options that name a cluster: `--kube`, `--kubeconfig` and `--context`, declared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from generator.cli.options import CommandT, combine_options
from generator.kube.access import ClusterAccess


def kube_options(purpose: str) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds --kube, --kubeconfig and --context to a click command.

    Args:
        purpose: the help of --kube; it says what the command does with the cluster.
    """
    return combine_options(
        click.option("--kube", is_flag=True, help=purpose),
        click.option(
            "--kubeconfig",
            help="Kubeconfig file of the cluster.  [default: the file that kubectl uses; if there "
            "is none, the pod's service account]",
        ),
        click.option(
            "--context", help="Context in the kubeconfig file.  [default: the current context]"
        ),
    )


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
