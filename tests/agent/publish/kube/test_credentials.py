"""The address of the API server, and the agent's credentials."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from agent.publish.kube.credentials import (
    ApiCredentials,
    TokenNode,
    parse_api_url,
    parse_token_node,
    read_cluster_address,
)
from runtime.values import Address
from topology.model.errors import ConfigError, KubeForbidden, KubeUnavailable


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://10.0.0.1:6443", Address("10.0.0.1", 6443)),
        ("https://api.example/", Address("api.example", 443)),
        ("https://[fd00::1]:6443", Address("fd00::1", 6443)),
    ],
)
def test_it_takes_an_address(url: str, address: Address) -> None:
    assert parse_api_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://10.0.0.1:6443", id="not encrypted"),
        pytest.param("10.0.0.1:6443", id="no scheme"),
        pytest.param("https://", id="no host"),
        pytest.param("https://a:port", id="no port"),
        pytest.param("https://[fd00::1", id="half an address"),
        pytest.param("https://a/path", id="a path"),
        pytest.param("https://a?x=1", id="a query"),
        pytest.param("https://user:secret@a", id="a password"),
    ],
)
def test_it_refuses_a_malformed_address(url: str) -> None:
    with pytest.raises(ConfigError, match="is not an address"):
        parse_api_url(url)


def test_it_finds_the_server_of_its_pod() -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert read_cluster_address(environ) == Address("fd00::1", 443)


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "set --api-server"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, "is not a port"),
        ({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "tcp://x"}, "is not a port"),
    ],
)
def test_it_reports_that_it_is_not_in_a_pod(environ: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_cluster_address(environ)


def credentials(folder: Path) -> ApiCredentials:
    return ApiCredentials(Address("h", 1), folder / "token", folder / "ca.crt")


def test_it_reads_a_token_each_time(tmp_path: Path) -> None:
    for token in ("one", "two"):
        (tmp_path / "token").write_text(f"{token}\n")
        assert credentials(tmp_path).read_token() == token


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"a b", id="two words"),
        pytest.param(b"a\r\nHost: evil", id="more than a line"),
        pytest.param("token-é".encode(), id="no ASCII"),
        pytest.param(b"x" * 70_000, id="no end"),
    ],
)
def test_it_refuses_a_malformed_token(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(KubeForbidden, match=r"^token .*/token: ") as told:
        credentials(tmp_path).read_token()
    assert "evil" not in str(told.value)


def test_it_reports_a_missing_authority(tmp_path: Path) -> None:
    with pytest.raises(KubeUnavailable, match=r"ca.crt: No such file"):
        credentials(tmp_path).open_tls()
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(KubeUnavailable, match=r"^authority .*ca.crt: "):
        credentials(tmp_path).open_tls()


def token_of(claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{payload}.signature"


def test_it_reads_the_node_of_its_token() -> None:
    claims = {"kubernetes.io": {"node": {"name": "n1", "uid": "u-1"}}}
    assert parse_token_node(token_of(claims)) == TokenNode("n1", "u-1")


@pytest.mark.parametrize(
    "token",
    [
        "opaque",
        "a.b.c",
        "a.é.c",
        "a." + "W" * 5 + ".c",
        token_of([]),
        token_of({}),
        token_of({"kubernetes.io": {"node": None}}),
        token_of({"kubernetes.io": {"node": {"name": "n1"}}}),
        token_of({"kubernetes.io": {"node": {"name": "n1", "uid": 7}}}),
        token_of({"kubernetes.io": {"node": {"name": "n1", "uid": ""}}}),
    ],
)
def test_it_finds_no_node_in_an_unbound_token(token: str) -> None:
    assert parse_token_node(token) is None


@pytest.mark.parametrize("kind", ["device", "large"])
def test_it_does_not_read_an_endless_file(tmp_path: Path, kind: str) -> None:
    file = Path("/dev/zero")
    if kind == "large":
        file = tmp_path / "large"
        with file.open("wb") as stream:
            stream.truncate(1 << 30)
    endless = ApiCredentials(Address("h", 1), file, file)
    with pytest.raises(KubeForbidden, match="holds no token"):
        endless.read_token()
    with pytest.raises(KubeUnavailable, match="larger than"):
        endless.open_tls()
