"""`toponaut rpc`: its options and its help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from generator.cli.options.client import server_options
from generator.cli.options.value_types import WholeNumber
from generator.cli.options.values import parse_duration

if TYPE_CHECKING:
    pass


@click.command(name="rpc")
@click.argument("method")
@click.option(
    "-f",
    "--file",
    help="Request as JSON or YAML; - is stdin. Without a file, all fields have their defaults. "
    "PlaceBatch takes several documents. A PlacementRequest document becomes the spec of "
    "the request.",
)
@server_options("to call")
@click.option(
    "--timeout",
    type=parse_duration,
    metavar="DURATION",
    default="10s",
    show_default=True,
    help="Deadline of the call; a watch ends then.",
)
@click.option(
    "--count", type=WholeNumber(1, 1_000_000_000), metavar="N", help="End a stream after N answers."
)
def command(**options: Any) -> None:
    """Call METHOD of a `toponaut serve`, and print its answer as JSON.

    A stream prints one line for each answer.

    METHOD is one of Place, PlaceBatch, Candidates, Capacity, Reserve, Confirm, Release,
    GetTopology, WatchTopology, WatchFeasible and ListFindings. The proto files in
    generator/rpc/toponaut/v1 define the requests, such as {spec: {groups: [{name: w,
    count: 4}]}} for Place.
    """
    from generator.cli.commands.rpc import run

    run(**options)
