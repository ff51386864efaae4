"""`toponaut doctor`: check that a cluster has all that Toponaut needs.

- facts: what a cluster says about itself
- cluster_reads: asks the cluster
- cluster_checks, install_checks, policy_checks: judge the answers
- rights: what the generator must be allowed to do

May import what commands share, and `generator.kube` and `generator.server` where the facts are.
"""

from __future__ import annotations

import os
from typing import Any, Final

import click

from generator.cli.connection_values import parse_access
from generator.cli.exit_codes import ExitCode
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


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    namespace: str,
    volcano_namespace: str,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut doctor` with the values of its options."""
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
