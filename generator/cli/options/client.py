"""The options of a command that calls a running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from generator.cli.options.decorators import combine_options
from generator.cli.options.value_types import InputFile

_FILE: Final = InputFile()
_IDENTITY_OPTIONS: Final = (
    click.option("--ca-file", type=_FILE, help="CA file that verifies the server's certificate."),
    click.option("--token-file", type=_FILE, help="File with a bearer token for the server."),
    click.option("--client-cert", type=_FILE, help="Client certificate for the server."),
    click.option("--client-key", type=_FILE, help="Key of the client certificate."),
    click.option(
        "--server-name", help="Name in the server's certificate, if it differs from the address."
    ),
)


def server_options(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a server to a click command.

    Args:
        purpose: ends the help of --server: `HOST:PORT of a `toponaut serve` PURPOSE.`
    """
    server = click.option("--server", help=f"HOST:PORT of a `toponaut serve` {purpose}.")
    return combine_options(server, *_IDENTITY_OPTIONS)
