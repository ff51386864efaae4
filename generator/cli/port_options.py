"""The options of `toponaut serve` that say who may ask it what, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from generator.cli.options import together
from generator.rpc.auth.tls import TlsFiles
from generator.server.settings import PortSettings

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_HOW: Final = (
    "say how callers are known: --tls-cert and --tls-key with --client-ca, --token-audience or "
    "both; or --insecure-loopback, which serves this machine without asking"
)


port_options: Final = together(
    click.option(
        "--metrics-listen", metavar="HOST:PORT", help="Serve /metrics for Prometheus there."
    ),
    click.option(
        "--health-listen",
        metavar="HOST:PORT",
        help="Serve /livez, /readyz and /startupz for a kubelet there.",
    ),
    click.option("--tls-cert", type=_FILE, help="Certificate to serve with; read again on change."),
    click.option("--tls-key", type=_FILE, help="Its key."),
    click.option("--client-ca", type=_FILE, help="Ask callers for a certificate of this."),
    click.option(
        "--token-audience",
        metavar="NAME",
        help="Ask callers for a token of the cluster that is made for NAME; goes with --kube.",
    ),
    click.option(
        "--insecure-loopback", is_flag=True, help="Serve without authentication, on loopback only."
    ),
)


def port_settings_of(options: dict[str, Any], *, is_cluster: bool) -> PortSettings:
    """Take the options of ports out of a command's parameters.

    Args:
        options: of click.
        is_cluster: whether a cluster is served, whose API server can judge tokens.

    Raises:
        click.UsageError: they leave open who may call, or do not go together.
    """
    cert, key = options.pop("tls_cert"), options.pop("tls_key")
    client_ca, audience = options.pop("client_ca"), options.pop("token_audience")
    is_insecure = options.pop("insecure_loopback")
    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if is_insecure and (cert or client_ca or audience):
        raise click.UsageError("--insecure-loopback goes with no other proof")
    if not is_insecure and not (cert and (client_ca or audience)):
        raise click.UsageError(_HOW)
    if audience and not is_cluster:
        raise click.UsageError("--token-audience goes with --kube: its API server judges tokens")
    tls = None if is_insecure else TlsFiles(cert, key, client_ca)
    return PortSettings(options.pop("metrics_listen"), options.pop("health_listen"), tls, audience)
