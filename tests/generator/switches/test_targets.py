"""The list of switches: what it accepts and what it refuses, without showing secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.switches.targets import AuthProtocol, PrivProtocol, parse_switches
from topology.model.errors import ConfigError

SECRETS = {"community": "cables", "auth": "authpass12", "priv": "privpass12", "short": "seven77"}


def read_secret(name: str) -> str:
    if name not in SECRETS:
        raise ConfigError(f"{name}: cannot be read")
    return SECRETS[name]


def parse(text: str) -> list[str]:
    found = parse_switches(text.encode(), source="switches.yaml", read_secret=read_secret)
    return [one.address for one in found.targets]


V2C: dict[str, Any] = {"addresses": ["10.0.0.1"], "communityFile": "community"}
V3: dict[str, Any] = {
    "addresses": ["10.0.0.1"],
    "version": "3",
    "user": "reader",
    "authKeyFile": "auth",
}


def test_it_reads_addresses_names_and_networks_once_each() -> None:
    text = """
    switches:
      - addresses: [10.0.0.1, Leaf02.Example.org, 10.0.1.0/30, "2001:DB8::1", 10.0.0.1]
        communityFile: community
      - addresses: [10.0.0.1, 10.0.2.0/32]
        version: 3
        user: reader
        authKeyFile: auth
    """
    assert parse(text) == [
        "10.0.0.1",
        "leaf02.example.org",
        "10.0.1.1",
        "10.0.1.2",
        "2001:db8::1",
        "10.0.2.0",
    ]


def test_it_reads_the_credentials_of_version_3_from_their_files() -> None:
    group = V3 | {"privKeyFile": "priv", "authProtocol": "SHA-512", "privProtocol": "AES-256"}
    raw = json.dumps({"switches": [group], "discover": {"networks": ["10.0.0.0/8"]}}).encode()
    found = parse_switches(raw, source="x", read_secret=read_secret)
    credentials = found.targets[0].credentials
    assert (credentials.user, credentials.auth_key, credentials.priv_key) == (
        "reader",
        "authpass12",
        "privpass12",
    )
    assert credentials.auth_protocol is AuthProtocol.SHA_512
    assert credentials.priv_protocol is PrivProtocol.AES_256
    assert found.discovery is not None
    assert [str(one) for one in found.discovery.networks] == ["10.0.0.0/8"]


def test_it_shows_no_secret_when_it_is_printed() -> None:
    raw = json.dumps({"switches": [V2C, V3 | {"addresses": ["b"], "privKeyFile": "priv"}]})
    found = parse_switches(raw.encode(), source="x", read_secret=read_secret)
    assert "reader" in repr(found)
    assert not any(secret in repr(found) for secret in SECRETS.values())


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "switches: is missing"),
        ({"switches": []}, "switches: expected at least 1 item"),
        ({"switches": [V2C | {"version": "1"}]}, "switches.0.version: expected '2c' or '3'"),
        ({"switches": [V2C | {"port": 0}]}, "switches.0.port"),
        ({"switches": [V2C | {"community": "x"}]}, "switches.0.community: is not a known field"),
        ({"switches": [{"addresses": ["a"]}]}, "version 2c needs communityFile"),
        ({"switches": [V2C | {"user": "x"}]}, "are for version 3"),
        ({"switches": [V3 | {"communityFile": "community"}]}, "communityFile is for version 2c"),
        ({"switches": [{**V3, "authKeyFile": None}]}, "version 3 needs user and authKeyFile"),
        ({"switches": [V3 | {"authKeyFile": "short"}]}, "the auth key is shorter than 8"),
        ({"switches": [V3 | {"privKeyFile": "gone"}]}, "gone: cannot be read"),
        ({"switches": [V2C | {"addresses": ["10.0.0.0/8"]}]}, "has more than 4096 addresses"),
        ({"switches": [V2C | {"addresses": ["10.0.0.9/24"]}]}, "has host bits set"),
        ({"switches": [V2C | {"addresses": ["10.0.0.256"]}]}, "not an address: '10.0.0.256'"),
        ({"switches": [V2C | {"addresses": ["a b\u202e"]}]}, r"network: 'a b\u202e'"),
        ({"switches": [V2C], "discover": {"networks": []}}, "discover.networks"),
        ({"switches": [V2C], "discover": {"networks": ["x"]}}, "discover.networks.0"),
        ({"switches": [V2C], "discover": {"networks": ["10.0.0.1/8"]}}, "has host bits set"),
        ({"switches": [V2C], "discover": {"networks": [1]}}, "expected a network such as"),
        ({"switches": [V2C | {"port": True}]}, "switches.0.port: expected"),
        ({"switches": [V2C | {"communityFile": "a\0b"}]}, "switches.0.communityFile"),
    ],
    ids=[
        "nothing",
        "no group",
        "version 1",
        "port 0",
        "a secret in the file itself",
        "no community",
        "a user without version 3",
        "a community with version 3",
        "a user without a key",
        "a key too short",
        "a file that is gone",
        "a network too large",
        "an address given as a network",
        "an address that is none",
        "a name that is none",
        "discovery in no network",
        "discovery in something else",
        "discovery in an address",
        "discovery in a number",
        "a truth in place of a port",
        "a name that no file has",
    ],
)
def test_it_refuses(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(json.dumps(document))
    assert problem in str(refused.value)
    assert not any(secret in str(refused.value) for secret in SECRETS.values())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected one document, got none"),
        ("a: 1\n---\nb: 2\n", "expected one document, got 2"),
        ("a: [", "not YAML"),
        ("- a", "switches.yaml: expected a mapping"),
    ],
    ids=["an empty file", "two documents", "broken YAML", "a list"],
)
def test_it_refuses_a_file_that_is(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"switches\.yaml") as refused:
        parse(text)
    assert problem in str(refused.value)
