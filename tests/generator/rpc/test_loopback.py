"""Without TLS, only loopback addresses are allowed."""

from __future__ import annotations

import pytest

from generator.rpc.auth.loopback import parse_loopback_address
from topology.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:50051", "127.0.0.1:50051"),
        ("127.8.8.8:1", "127.8.8.8:1"),
        ("localhost:0", "127.0.0.1:0"),
        ("[::1]:50051", "[::1]:50051"),
        ("::1:50051", "[::1]:50051"),
        ("127.0.0.1:080", "127.0.0.1:80"),
    ],
)
def test_it_accepts(text: str, address: str) -> None:
    assert parse_loopback_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0.0.0.0:50051", id="every address of the machine"),
        pytest.param("10.0.0.1:50051", id="a private address"),
        pytest.param("[::ffff:10.0.0.1]:50051", id="a mapped address"),
        pytest.param("example.com:50051", id="a name"),
        pytest.param("127.0.0.1.example.com:50051", id="a name that looks like loopback"),
        pytest.param("2130706433:50051", id="loopback as one number"),
        pytest.param("unix:/run/x:1", id="a socket"),
        pytest.param(":50051", id="no host"),
        pytest.param("127.0.0.1:65536", id="a port beyond the last"),
        pytest.param("127.0.0.1:²", id="a port of odd digits"),
        pytest.param("127.0.0.1\n:1", id="a line break"),
    ],
)
def test_it_refuses(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_loopback_address(text)
    assert "\n" not in str(caught.value)
