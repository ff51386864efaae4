"""The options by which a command asks a running server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.options import combine_options
from generator.rpc.auth.key_files import ClientIdentity

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class ServerEndpoint(NamedTuple):
    """Whom to ask, and how to prove who we are."""

    address: str
    identity: ClientIdentity


_IDENTITY_OPTIONS: Final = (
    click.option("--ca-file", type=_FILE, help="Authority of the server's certificate."),
    click.option("--token-file", type=_FILE, help="Bearer token for the server, as it asks for."),
    click.option("--client-cert", type=_FILE, help="Certificate for the server, as it asks for."),
    click.option("--client-key", type=_FILE, help="Its key."),
    click.option("--server-name", help="In the server's certificate, where not its address."),
)


def server_options(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what gives a click command the options of a server, and says what it is for."""
    server = click.option("--server", help=f"HOST:PORT of a `toponaut serve` {purpose}.")
    return combine_options(server, *_IDENTITY_OPTIONS)


def parse_server_endpoint(options: dict[str, Any]) -> ServerEndpoint | None:
    """Take the server to ask out of a command's parameters; None where none is named.

    Raises:
        click.UsageError: a proof is given and no server, or half of one.
    """
    address = options.pop("server")
    proof = ClientIdentity(
        ca=options.pop("ca_file"),
        token=options.pop("token_file"),
        cert=options.pop("client_cert"),
        key=options.pop("client_key"),
        server_name=options.pop("server_name"),
    )
    if address is None and any(proof):
        raise click.UsageError("--ca-file, --token-file and the like go with --server")
    if (proof.cert is None) != (proof.key is None):
        raise click.UsageError("--client-cert and --client-key go together")
    return None if address is None else ServerEndpoint(address, proof)
