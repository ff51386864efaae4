"""`toponaut explain`: its options and its help."""

from __future__ import annotations

from typing import Any

import click


@click.command(name="explain")
@click.argument("topic", required=False)
def command(**options: Any) -> None:
    """Explain a kind of finding, or a field of an object or file.

    TOPIC is a kind of finding such as missing-link, or the path of a field such as
    fabric.spec.changeBudget, request.spec.groups or tree. Paths begin with fabric, planes, report,
    request, reservation or tree. Without TOPIC, list all kinds and the roots of paths.
    """
    from generator.cli.commands.reference.explain import run

    run(**options)
