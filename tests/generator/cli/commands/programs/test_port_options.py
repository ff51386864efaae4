"""The options of ports: how callers authenticate must be chosen, and has no default."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.rpc.auth.tls import TlsFiles
from generator.server.endpoints import Endpoints, build_metrics
from generator.server.settings import EndpointSettings
from tests.generator.rpc.credentials import Pki
from tests.generator.scenes import run
from topology.model.errors import ConfigError


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param("", "choose how callers authenticate", id="no option"),
        pytest.param("--tls-cert C", "together", id="a certificate without a key"),
        pytest.param(
            "--tls-cert C --tls-key K",
            "choose how callers authenticate",
            id="TLS without authentication",
        ),
        pytest.param(
            "--client-ca C", "choose how callers authenticate", id="authentication without TLS"
        ),
        pytest.param(
            "--insecure-loopback --client-ca C",
            "--insecure-loopback excludes",
            id="both ways at once",
        ),
        pytest.param(
            "--tls-cert C --tls-key K --token-audience x",
            "needs --kube",
            id="tokens without an API server",
        ),
    ],
)
def test_it_refuses_to_serve_with(tmp_path: Path, words: str, why: str) -> None:
    pki = Pki(tmp_path)
    files = {"C": str(pki.files.cert), "K": str(pki.files.key)}
    (tmp_path / "store").mkdir()
    given = [files.get(word, word) for word in words.split()]
    ran = run("serve", "--store", tmp_path / "store", *given)
    assert ran.code == ExitCode.USAGE
    assert why in ran.err


def test_it_leaves_no_port_open_if_one_cannot_be_bound() -> None:
    metrics = build_metrics()
    first = Endpoints(EndpointSettings(metrics="127.0.0.1:0"), metrics, period_s=1)
    with pytest.raises(ConfigError, match="is not an address"):
        Endpoints(EndpointSettings(metrics="127.0.0.1:0", health="nonsense"), metrics, period_s=1)
    first.stop()


def test_it_opens_no_port_with_invalid_certificates(tmp_path: Path) -> None:
    absent = TlsFiles(tmp_path / "a", tmp_path / "b")
    with pytest.raises(ConfigError, match="No such file"):
        Endpoints(EndpointSettings(tls=absent), build_metrics(), period_s=1)
