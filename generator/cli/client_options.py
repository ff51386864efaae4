"""The options of a command that calls a running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from generator.cli.option_types import InputFile
from generator.cli.options import combine_options
from generator.rpc.auth.key_files import ClientIdentity

_FILE: Final = InputFile()


class ServerEndpoint(NamedTuple):
    """The server to call, and the credentials for it."""

    address: str
    """`HOST:PORT`."""
    identity: ClientIdentity


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


def parse_server_endpoint(options: dict[str, Any]) -> ServerEndpoint | None:
    """Remove the options of a server from a command's parameters, and return the server.

    Returns None without --server.

    Raises:
        click.UsageError: credentials are given without --server, or a certificate without its key
            or a key without its certificate.
    """
    address = options.pop("server")
    identity = ClientIdentity(
        ca=options.pop("ca_file"),
        token=options.pop("token_file"),
        cert=options.pop("client_cert"),
        key=options.pop("client_key"),
        server_name=options.pop("server_name"),
    )
    if address is None and any(identity):
        raise click.UsageError(
            "--ca-file, --token-file, --client-cert, --client-key and --server-name need --server"
        )
    if (identity.cert is None) != (identity.key is None):
        raise click.UsageError("give --client-cert and --client-key together")
    return None if address is None else ServerEndpoint(address, identity)
