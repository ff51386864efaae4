"""`toponaut doctor`: check that a cluster has all that Toponaut needs.

- facts: what a cluster says about itself
- cluster_reads: asks the cluster
- cluster_checks, install_checks: judge the answers
- rights: what the generator must be allowed to do

May import what commands share, and `generator.kube` and `generator.server` where the facts are.
"""

from __future__ import annotations

import os
from typing import Any, Final

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.kube_options import kube_options, parse_access
from generator.cli.option_types import NamespaceName
from generator.cli.output import output_option, paint, print_document
from generator.kube.access import ClusterAccess
from runtime.checks import Outcome, document_of_checks, render_checks
from runtime.clock import utc_now

_COLORS: Final = {
    Outcome.OK: "green",
    Outcome.WARNING: "yellow",
    Outcome.ERROR: "red",
    Outcome.UNKNOWN: "blue",
}


@click.command(name="doctor")
@kube_options("Read a cluster. This is the default, and the only source.")
@click.option(
    "--namespace",
    type=NamespaceName(),
    default="toponaut-system",
    show_default=True,
    help="Namespace of Toponaut.",
)
@click.option(
    "--volcano-namespace", default="volcano-system", show_default=True, help="Namespace of Volcano."
)
@click.option("--check", is_flag=True, help="Exit with 5 if there are warnings or errors.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    *,
    namespace: str,
    volcano_namespace: str,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Check that a cluster has all that Toponaut needs, and print what to do.

    Checks kinds, the Fabric object, the generator with its rights and its certificate, agents,
    sweeps, the schedulers that are installed, and Volcano's settings. On a node, run
    toponaut-agent doctor.
    """
    from generator.cli.commands.doctor.cluster_checks import check_cluster  # noqa: PLC0415 - models
    from generator.cli.commands.doctor.cluster_reads import (  # noqa: PLC0415 - loads the client
        fetch_cluster_facts,
    )

    access = parse_access({**options, "kube": True}) or ClusterAccess()
    facts = fetch_cluster_facts(
        access, os.environ, namespace=namespace, volcano_namespace=volcano_namespace
    )
    checks = check_cluster(facts, now=utc_now(), namespace=namespace)
    print_document(
        document_of_checks(checks),
        output,
        text=lambda: render_checks(checks, lambda text, row: paint(text, _COLORS[row])),
    )
    if check and any(row.outcome in {Outcome.WARNING, Outcome.ERROR} for row in checks):
        ctx.exit(ExitCode.CHECK_FAILED)
