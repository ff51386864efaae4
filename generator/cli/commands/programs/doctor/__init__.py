"""`toponaut doctor`: check that a cluster, or this machine, has all that Toponaut needs.

- facts: what a cluster says about itself, and the requests that ask for it
- checks: judges the answers
- machine: checks this machine where there is no cluster
- rights: what the generator must be allowed to do
"""

from __future__ import annotations

import os
from typing import Final

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, end
from generator.cli.options import ClusterOptions
from generator.cli.output import paint, print_document
from generator.kube.access import ClusterAccess
from runtime.checks import Outcome, document_of_checks, render_checks
from runtime.clock import utc_now

_COLORS: Final = {
    Outcome.OK: "green",
    Outcome.WARNING: "yellow",
    Outcome.ERROR: "red",
    Outcome.UNKNOWN: "blue",
}


@options.command(
    "doctor",
    examples=(
        "toponaut doctor",
        "toponaut doctor --context gpu-cluster --check",
    ),
)
def command(
    *,
    cluster: ClusterOptions = options.kube(
        "Read a cluster, which is the default if a kubeconfig file exists."
    ),
    namespace: str = options.namespace("Namespace of Toponaut.", default="toponaut-system"),
    volcano_namespace: str = options.option("Namespace of Volcano.", default="volcano-system"),
    check: bool = options.option("Exit with 5 if there are warnings or errors."),
    output: str = options.OUTPUT,
) -> None:
    """Check that a cluster has all that Toponaut needs, and print what to do.

    Checks kinds, the Fabric object, the generator with its rights and its certificate, the
    admission policies, agents, sweeps, the schedulers that are installed, and Volcano's settings.
    Without a kubeconfig file, it checks this machine: the libraries, the config file with the
    options of every command, variables of the environment, and the limit of open files. On a node,
    run toponaut-agent doctor.
    """
    from generator.cli.commands.programs.doctor.checks import check_cluster
    from generator.cli.commands.programs.doctor.facts import fetch_cluster_facts
    from generator.cli.commands.programs.doctor.machine import check_machine
    from generator.kube.credentials import may_have_credentials

    is_named = cluster.kube or cluster.kubeconfig or cluster.context
    if is_named or may_have_credentials(os.environ):
        facts = fetch_cluster_facts(
            ClusterAccess(cluster.kubeconfig, cluster.context),
            os.environ,
            namespace=namespace,
            volcano_namespace=volcano_namespace,
        )
        checks = check_cluster(facts, now=utc_now(), namespace=namespace)
    else:
        checks = check_machine(click.get_current_context().find_root(), os.environ)
    print_document(
        document_of_checks(checks),
        output,
        text=lambda: render_checks(checks, lambda text, row: paint(text, _COLORS[row])),
    )
    if check and any(row.outcome in {Outcome.WARNING, Outcome.ERROR} for row in checks):
        end(ExitCode.CHECK_FAILED)
