"""`toponaut approve`: approve one held plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.connection_values import parse_access
from generator.cli.exit_codes import ExitCode
from generator.cli.output import MAX_MESSAGE
from generator.cli.store_access import open_plan_store
from topology.model.errors import KubeError, StoreError, show


def run(
    ctx: click.Context,
    /,
    plan: str,
    *,
    store: Path | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut approve` with the values of its options."""
    with open_plan_store(store, parse_access(options)) as opened:
        try:
            opened.approve(plan)
        except (KubeError, StoreError) as error:  # a failed write, not missing input
            click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)
            ctx.exit(ExitCode.INTERNAL)
    click.echo(f"plan {plan} is approved", err=True)
