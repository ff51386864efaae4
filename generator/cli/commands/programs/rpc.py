"""`toponaut rpc`: call any method of a server from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from generator.cli import options
from generator.cli.options import ServerOptions
from topology.model.errors import ConfigError, show

if TYPE_CHECKING:
    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message


@options.command(
    "rpc",
    examples=(
        "toponaut rpc GetTopology --server 127.0.0.1:50051",
        "toponaut rpc Place --server 127.0.0.1:50051 -f request.yaml",
    ),
)
def command(
    *,
    method: str = options.argument(),
    file: str | None = options.option(
        "Request as JSON or YAML; - is stdin. Without a file, all fields have their defaults. "
        "PlaceBatch takes several documents. A PlacementRequest document becomes the spec of the "
        "request.",
        "-f",
        "--file",
    ),
    server: ServerOptions = options.server("to call"),
    timeout: float = options.duration("Deadline of the call; a watch ends then.", default="10s"),
    count: int | None = options.number(
        1, 1_000_000_000, "End a stream after N answers.", metavar="N"
    ),
) -> None:
    """Call METHOD of a `toponaut serve`, and print its answer as JSON.

    A stream prints one line for each answer.

    METHOD is one of Place, PlaceBatch, Candidates, Capacity, Reserve, Confirm, Release,
    GetTopology, WatchTopology, WatchFeasible and ListFindings. The proto files in
    generator/rpc/toponaut/v1 define the requests, such as {spec: {groups: [{name: w,
    count: 4}]}} for Place.
    """
    from generator.rpc.client import METHODS, PlacementClient

    endpoint = server.find_endpoint()
    if endpoint is None:
        raise click.UsageError("give the server to call: --server HOST:PORT")
    rpc_method = METHODS.get(method.rpartition("/")[2])
    if rpc_method is None:
        raise click.BadParameter(
            f"'{show(method)}' is not one of {', '.join(METHODS)}", param_hint="METHOD"
        )
    messages = list(_parse_messages(rpc_method, file))
    if len(messages) != 1 and not rpc_method.client_streaming:
        raise ConfigError(f"{method} takes one document, got {len(messages)}")
    with PlacementClient(endpoint.address, timeout, endpoint.identity) as client:
        for answer in islice(client.call_method(rpc_method, messages), count):
            _print_answer(answer, is_line=rpc_method.server_streaming)


def _parse_messages(method: MethodDescriptor, file: str | None) -> Iterator[Message]:
    """Yield the messages of a file; without a file, one message with default fields."""
    from generator.cli.request_input import MAX_REQUEST_BYTES
    from generator.objects.yaml_document import list_documents
    from generator.rpc.client import parse_message
    from generator.store.local_files import read_input

    if file is None:
        yield parse_message(method, {}, "")
        return
    source, raw = read_input(file, MAX_REQUEST_BYTES)
    for document in list_documents(raw, source=source):
        yield parse_message(method, document.value, source)


def _print_answer(answer: dict[str, Any], *, is_line: bool) -> None:
    """Print one answer, and flush, so that a stream appears line by line."""
    sys.stdout.write(json.dumps(answer, indent=None if is_line else 2, ensure_ascii=False) + "\n")
    sys.stdout.flush()
