"""Durations and addresses: each text has one meaning or is refused."""

from __future__ import annotations

import pytest

from runtime.values import (
    ANY_ADDRESS,
    LISTEN_ADDRESS,
    Address,
    AddressForm,
    parse_address,
    parse_delay,
    parse_duration,
)
from topology.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("60s", 60), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("0.000001s", 1e-6)],
)
def test_it_reads_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == parse_delay(text) == seconds


def test_it_reads_a_delay_of_zero() -> None:
    assert parse_delay("0s") == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "60", "-1s", "1 s", "1d", "s", "1e3s", "٣s", "¹s", "1s\n", " 1s", "5", "soon"),
        "9999999999s",
    ],
)
def test_it_refuses_as_duration(text: str) -> None:
    for parse in (parse_duration, parse_delay):
        with pytest.raises(ConfigError, match="is not a duration such as 500ms"):
            parse(text)


@pytest.mark.parametrize("text", ["0s", "0ms", "0.0h"])
def test_it_refuses_a_duration_of_zero(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a duration above 0"):
        parse_duration(text)


def test_it_shows_a_refused_text_escaped() -> None:
    with pytest.raises(ConfigError, match=r"'\\x1b\[2J' is not a duration such as 500ms"):
        parse_duration("\x1b[2J")


@pytest.mark.parametrize("form", [ANY_ADDRESS, LISTEN_ADDRESS])
@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", Address("", 8080)),
        (":8081", Address("", 8081)),
        ("192.0.2.1:8080", Address("192.0.2.1", 8080)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:0", Address("::1", 0)),
        ("[::1]:1", Address("::1", 1)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
        ("localhost:65535", Address("localhost", 65535)),
        ("some.host:65535", Address("some.host", 65535)),
    ],
)
def test_it_reads_an_address_and_prints_it_unchanged(
    text: str, address: Address, form: AddressForm
) -> None:
    assert parse_address(text, form) == address
    assert str(address) == text


@pytest.mark.parametrize("form", [ANY_ADDRESS, LISTEN_ADDRESS])
@pytest.mark.parametrize(
    "text",
    [
        *("8080", "", "host", "host:", "host:65536", "host:-1", "a\nb", "a:b", "a:1\n", "a b:1"),
        *("[::1", "[::1]x:1", "[host]:1", "[x]:1", "host:1:2", "http://host:1", "host:\u0661"),
    ],
)
def test_it_refuses_as_address(text: str, form: AddressForm) -> None:
    with pytest.raises(ConfigError, match="is not an address such as") as caught:
        parse_address(text, form)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "address"), [("::1:80", Address("::1", 80)), ("a_b:1", Address("a_b", 1))]
)
def test_it_accepts_more_hosts_to_call_than_to_listen_on(text: str, address: Address) -> None:
    assert parse_address(text) == address
    with pytest.raises(ConfigError, match=r"such as 127\.0\.0\.1:8080, \[::1\]:80 or :8080"):
        parse_address(text, LISTEN_ADDRESS)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1:80", "http://127.0.0.1:80/metrics"),
        ("[::1]:80", "http://[::1]:80/metrics"),
        ("0.0.0.0:80", "http://localhost:80/metrics"),
        ("[::]:80", "http://localhost:80/metrics"),
        (":80", "http://localhost:80/metrics"),
    ],
)
def test_an_address_has_the_form_that_a_browser_opens(address: str, url: str) -> None:
    found = parse_address(address)
    assert found.url("/metrics") == url
    assert found.url("/metrics", is_tls=True) == url.replace("http", "https")
