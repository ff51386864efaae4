"""Texts of options and their values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.settings import (
    check_node_name,
    parse_argv,
    parse_delay,
    parse_duration,
    parse_listen,
    parse_size,
    parse_subnet,
)
from runtime.values import Address
from topology.model.errors import ConfigError


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_duration, "500ms", 0.5),
        (parse_duration, " 30s ", 30.0),
        (parse_duration, "1.5m", 90.0),
        (parse_duration, "2h", 7200.0),
        (parse_delay, "0s", 0.0),
        (parse_size, "4096B", 4096),
        (parse_size, "16MiB", 16 << 20),
        (parse_size, "1GiB", 1 << 30),
        (parse_argv, "ibsim-run 'a b' \"c\"", ("ibsim-run", "a b", "c")),
        (parse_argv, "x $(id) ; y|z", ("x", "$(id)", ";", "y|z")),
        (parse_subnet, "0xFE80000000000000", "fe80000000000000"),
        (parse_subnet, "fec0:0000:0000:0001", "fec0000000000001"),
        (parse_listen, "127.0.0.1:8080", Address("127.0.0.1", 8080)),
        (parse_listen, " :8081 ", Address("", 8081)),
        (parse_listen, "[::1]:0", Address("::1", 0)),
        (parse_listen, "localhost:65535", Address("localhost", 65535)),
        (check_node_name, "gpu-01.rack.example", "gpu-01.rack.example"),
    ],
)
def test_it_reads(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_duration, text) for text in ("60", "", "0s", "-1s", "1d", "1e3s", "1 s", "¹s")),
        *((parse_delay, text) for text in ("5", "soon", "9999999999s")),
        *((parse_size, text) for text in ("16", "0B", "1.5MiB", "16MB", "-1B")),
        *((parse_argv, text) for text in ("", "  ", "'open", "'' x")),
        *((parse_subnet, text) for text in ("", "0" * 16, "f" * 16, "xyz", "1" * 17)),
        *(
            (parse_listen, text)
            for text in ("", "8080", "::1:80", "[x]:1", "a:65536", "a:b", "a b:1")
        ),
        *((check_node_name, text) for text in ("", "Node", "../x", "a/b", "-a", "a" * 254)),
    ],
)
def test_it_refuses(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


def test_it_shows_a_refused_text_escaped() -> None:
    with pytest.raises(ConfigError, match=r"'\\x1b\[2J' is not a duration such as 500ms"):
        parse_duration("\x1b[2J")
