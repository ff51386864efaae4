"""`toponaut rpc`: call any method of a server from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from generator.cli.connection_values import parse_server_endpoint
from generator.cli.input_files import MAX_REQUEST_BYTES, read_input
from generator.objects.yaml_document import parse_documents
from topology.model.errors import ConfigError, ParseError, show

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from generator.rpc.client.methods import RpcMethod


def run(
    method: str,
    file: str | None,
    *,
    timeout: float,
    count: int | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut rpc` with the values of its options."""
    from generator.rpc.client.connection import Connection  # noqa: PLC0415 - loads gRPC
    from generator.rpc.client.methods import METHODS, call_method  # noqa: PLC0415 - the same

    server = parse_server_endpoint(options)
    if server is None:
        raise click.UsageError("give the server to call: --server HOST:PORT")
    rpc_method = METHODS.get(method.rpartition("/")[2])
    if rpc_method is None:
        raise click.BadParameter(
            f"'{show(method)}' is not one of {', '.join(METHODS)}", param_hint="METHOD"
        )
    messages = list(_parse_messages(rpc_method, file))
    if len(messages) != 1 and not rpc_method.is_client_streaming:
        raise ConfigError(f"{method} takes one document, got {len(messages)}")
    with Connection(server.address, timeout, server.identity) as connection:
        for answer in islice(call_method(connection, rpc_method, messages), count):
            _print_answer(answer, is_line=rpc_method.is_server_streaming)


def _parse_messages(method: RpcMethod, file: str | None) -> Iterator[Message]:
    """Yield the messages of a file; without a file, one message with default fields."""
    from generator.rpc.client.methods import parse_message  # noqa: PLC0415 - as above

    if file is None:
        yield parse_message(method, {}, "")
        return
    source, raw = read_input(file, MAX_REQUEST_BYTES)
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        yield parse_message(method, document.value, source)


def _print_answer(answer: dict[str, Any], *, is_line: bool) -> None:
    """Print one answer, and flush, so that a stream appears line by line."""
    sys.stdout.write(json.dumps(answer, indent=None if is_line else 2, ensure_ascii=False) + "\n")
    sys.stdout.flush()
