"""The cluster to read and the server to call, from the values of their options."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from generator.kube.access import ClusterAccess
from generator.rpc.auth.key_files import ClientIdentity


class ServerEndpoint(NamedTuple):
    """The server to call, and the credentials for it."""

    address: str
    """`HOST:PORT`."""
    identity: ClientIdentity


def parse_access(options: dict[str, Any]) -> ClusterAccess | None:
    """Remove the options of `kube_options` from a command's parameters, and return the cluster.

    Returns None without --kube.

    Raises:
        click.UsageError: --kubeconfig or --context is given without --kube.
    """
    access = ClusterAccess(options.pop("kubeconfig"), options.pop("context"))
    if options.pop("kube"):
        return access
    if any(access):
        raise click.UsageError("--kubeconfig and --context need --kube")
    return None


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
