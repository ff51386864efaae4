"""The options that name a cluster: `--kube`, `--kubeconfig` and `--context`, declared once."""

from __future__ import annotations

from collections.abc import Callable

import click

from generator.cli.options.decorators import CommandT, combine_options


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
