"""The file that lists the switches to walk: addresses, credentials, and discovery.

    switches:
      - addresses: [10.0.0.1, leaf02.example.org, 10.0.1.0/28]
        communityFile: secrets/community
      - addresses: [10.0.2.1]
        version: "3"
        user: reader
        authKeyFile: secrets/auth
        privKeyFile: secrets/priv
    discover:
      networks: [10.0.0.0/16]

Secrets are in separate files. They are never printed, and leave this process only in SNMP.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import (
    BeforeValidator,
    Field,
    IPvAnyNetwork,
    StringConstraints,
    ValidationError,
    model_validator,
)

from generator.objects.yaml_document import parse_document
from generator.store.local_files import read_secret_file, read_whole_file
from topology.model.errors import ConfigError, ParseError, show
from topology.model.validation import describe_validation
from topology.model.wire_model import WireModel

MAX_ADDRESSES: Final = 4096  # of one network or list: more is a mistyped prefix
MIN_KEY_CHARS: Final = 8  # RFC 3414, 11.2
_MAX_CONFIG_BYTES: Final = 4 << 20
_MAX_SECRET_BYTES: Final = 4096
_GROUP_AND_OTHERS_MODE: Final = 0o077
_OTHERS_MODE: Final = 0o007
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\Z", re.ASCII)

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")]
SwitchAddress = Annotated[str, StringConstraints(min_length=1, max_length=253)]


def _check_network(value: object) -> object:
    """Refuse a malformed network with a reason; pydantic would read a number as an address."""
    if not isinstance(value, str):
        raise ValueError("expected a network such as 10.0.0.0/16")  # noqa: TRY004 - pydantic's way
    ipaddress.ip_network(value)
    return value


NetworkText = Annotated[IPvAnyNetwork, BeforeValidator(_check_network)]
SnmpVersion = Annotated[Literal["2c", "3"], BeforeValidator(str)]  # YAML reads 3 as a number


class AuthProtocol(StrEnum):
    """The authentication protocol of an SNMPv3 user."""

    MD5 = "MD5"
    SHA = "SHA"
    SHA_224 = "SHA-224"
    SHA_256 = "SHA-256"
    SHA_384 = "SHA-384"
    SHA_512 = "SHA-512"


class PrivProtocol(StrEnum):
    """The encryption of SNMPv3."""

    DES = "DES"
    AES = "AES"
    AES_192 = "AES-192"
    AES_256 = "AES-256"


class SwitchGroup(WireModel):
    """Switches with the same credentials."""

    addresses: Annotated[tuple[SwitchAddress, ...], Field(min_length=1, max_length=MAX_ADDRESSES)]
    """IP addresses, host names, or networks; every address of a network is tried."""
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] = 161
    version: SnmpVersion = "2c"
    community_file: FilePath | None = None
    user: Annotated[str, StringConstraints(min_length=1, max_length=32)] | None = None
    auth_protocol: AuthProtocol = AuthProtocol.SHA_256
    auth_key_file: FilePath | None = None
    priv_protocol: PrivProtocol = PrivProtocol.AES
    priv_key_file: FilePath | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse missing credentials, and credentials of the other version."""
        is_v3 = self.version == "3"
        if is_v3 and (self.user is None or self.auth_key_file is None):
            raise ValueError("version 3 needs user and authKeyFile")
        if is_v3 and self.community_file is not None:
            raise ValueError("communityFile is for version 2c")
        if not is_v3 and self.community_file is None:
            raise ValueError("version 2c needs communityFile")
        if not is_v3 and (self.user or self.auth_key_file or self.priv_key_file):
            raise ValueError("user, authKeyFile and privKeyFile are for version 3")
        return self


class Discovery(WireModel):
    """Which neighbors of switches are walked too.

    A neighbor announces its address itself. So the credentials of the switch that hears it are
    never sent to an address outside these networks.
    """

    networks: Annotated[tuple[NetworkText, ...], Field(min_length=1, max_length=1024)]
    max_switches: Annotated[int, Field(ge=1, le=10_000)] = 1024
    """Addresses tried in addition to the listed ones."""
    max_depth: Annotated[int, Field(ge=1, le=16)] = 8
    """Greatest distance from a listed switch, in cables."""


class SwitchesFile(WireModel):
    """The whole file."""

    switches: Annotated[tuple[SwitchGroup, ...], Field(min_length=1, max_length=1024)]
    discover: Discovery | None = None


@dataclass(frozen=True, slots=True)
class SnmpCredentials:
    """SNMP credentials; the repr contains no secret."""

    community: str = field(default="", repr=False)
    """Empty for version 3."""
    user: str = ""
    auth_protocol: AuthProtocol = AuthProtocol.SHA_256
    auth_key: str = field(default="", repr=False)
    priv_protocol: PrivProtocol = PrivProtocol.AES
    priv_key: str = field(default="", repr=False)
    """Empty: no encryption."""


class Target(NamedTuple):
    """One address to walk."""

    address: str
    """IP address or host name."""
    port: int
    credentials: SnmpCredentials
    is_expected: bool = True
    """Whether a switch must be there; False for addresses of a network and of neighbors."""


class TargetList(NamedTuple):
    """The parsed file."""

    targets: tuple[Target, ...]
    """One per address and port, in the order of the file."""
    discovery: Discovery | None


def parse_switches(raw: bytes, *, source: str, read_secret: Callable[[str], str]) -> TargetList:
    """Return the targets of the file.

    Args:
        raw: YAML or JSON.
        source: names the file in errors.
        read_secret: returns the secret in a file, by the file name in the list.

    Raises:
        ConfigError: the file is wrong, or a secret cannot be read or is too short.
    """
    document = parse_document(raw, source=source)
    try:
        file = SwitchesFile.model_validate(document.value)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(describe_validation(error))}") from error
    targets: dict[tuple[str, int], Target] = {}
    for group in file.switches:
        credentials = _read_credentials(group, source, read_secret)
        for address, is_expected in _expand_addresses(group, source):
            target = Target(address, group.port, credentials, is_expected=is_expected)
            earlier = targets.setdefault((address, group.port), target)
            targets[address, group.port] = earlier._replace(
                is_expected=earlier.is_expected or is_expected
            )
    return TargetList(tuple(targets.values()), file.discover)


def _read_credentials(
    group: SwitchGroup, source: str, read_secret: Callable[[str], str]
) -> SnmpCredentials:
    if group.community_file is not None:
        return SnmpCredentials(community=read_secret(group.community_file))
    keys = {
        name: read_secret(file) if file else ""
        for name, file in (("auth", group.auth_key_file), ("priv", group.priv_key_file))
    }
    for name, key in keys.items():
        if 0 < len(key) < MIN_KEY_CHARS:
            raise ConfigError(
                f"{source}: the {name} key is shorter than {MIN_KEY_CHARS} characters"
            )
    return SnmpCredentials(
        user=group.user or "",
        auth_protocol=group.auth_protocol,
        auth_key=keys["auth"],
        priv_protocol=group.priv_protocol,
        priv_key=keys["priv"],
    )


def _expand_addresses(group: SwitchGroup, source: str) -> Iterator[tuple[str, bool]]:
    """Yield addresses, and whether a switch must be there."""
    for text in group.addresses:
        if "/" in text:
            yield from ((address, False) for address in _expand_hosts(text, source))
        elif ":" in text or text.replace(".", "").isdecimal():
            try:
                yield str(ipaddress.ip_address(text)), True
            except ValueError as error:
                raise ConfigError(f"{source}: not an address: '{show(text)}'") from error
        elif _HOST.match(text):
            yield text.lower(), True
        else:
            raise ConfigError(f"{source}: not an address, name or network: '{show(text)}'")


def _expand_hosts(text: str, source: str) -> Iterator[str]:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(f"{source}: not a network: {show(str(error))}") from error
    if network.num_addresses > MAX_ADDRESSES:
        raise ConfigError(f"{source}: {text} has more than {MAX_ADDRESSES} addresses")
    yield from map(str, network.hosts())


class LoadedTargets(NamedTuple):
    """The list, and warnings about it."""

    targets: TargetList
    problems: tuple[ParseError, ...]


def read_targets(config: Path) -> LoadedTargets:
    """Read the list of switches and its secret files; relative names start at the list's folder.

    Raises:
        ConfigError: one of the files cannot be read or is wrong.
    """
    raw = read_whole_file(config, _MAX_CONFIG_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    problems: list[ParseError] = []
    read_secret = partial(_read_secret, config.parent, problems)
    targets = parse_switches(raw, source=str(config), read_secret=read_secret)
    return LoadedTargets(targets, tuple(problems))


def _read_secret(folder: Path, problems: list[ParseError], name: str) -> str:
    file = folder / name
    source = str(file)
    raw = read_secret_file(file, _MAX_SECRET_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    if _is_exposed(file.stat()):
        problems.append(ParseError("other users can read this secret: chmod 600", source=source))
    secret = raw.decode("ascii", "replace").rstrip("\r\n")
    if not secret:
        raise ConfigError(f"{source}: the secret is empty")
    if not (secret.isascii() and secret.isprintable()):
        raise ConfigError(f"{source}: the secret must be one line of printable ASCII")
    return secret


def _is_exposed(status: os.stat_result) -> bool:
    """Return whether other users can read a file.

    If another user owns the file, this process may read it through the group: a kubelet gives
    Secrets to root and to the group of the pod.
    """
    is_owner = status.st_uid == os.geteuid()
    return bool(status.st_mode & (_GROUP_AND_OTHERS_MODE if is_owner else _OTHERS_MODE))
