"""What the agent is told: its settings, built once from options and variables, then passed on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from runtime import values
from runtime.values import Address
from topology.model.errors import ConfigError, show
from topology.model.facts import DeviceKind
from topology.model.ids import parse_guid, parse_node_name

DEFAULT_SUBNET: Final = "fe80000000000000"
"""The subnet prefix of a fabric whose subnet manager was given none."""

_MAX_SWEEPS: Final = 16
"""That a node has HCAs for, each in a subnet of its own."""
_SIZE = re.compile(r"(\d{1,12})(B|KiB|MiB|GiB)\Z")
_BYTES: Final[Mapping[str, int]] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class SweepMode(StrEnum):
    """When this node sweeps InfiniBand subnets."""

    ALWAYS = "always"
    ELECTED = "elected"
    """Where the store's Fabric object says so."""
    NEVER = "never"


class SweepTarget(NamedTuple):
    """A subnet that this node is elected to sweep, and the port to do it from."""

    subnet: str
    """Prefix, 16 hex digits."""
    device: str
    port: int


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """How this node sweeps InfiniBand subnets, when it is asked to."""

    command: tuple[str, ...]
    """An argv that prints the form of ibnetdiscover; of a target, its device and port follow."""
    deadline_s: float
    max_output_bytes: int
    subnet: str | None
    """Prefix, 16 hex digits; None reads it from the local port."""
    targets: tuple[SweepTarget, ...] | None = None
    """What it is elected for, in order; None: whatever subnet the command sweeps."""
    interval_s: float = 0.0
    """From one sweep to the next at least."""


class FrameMode(StrEnum):
    """When this node listens to LLDP frames itself."""

    AUTO = "auto"
    """Where no lldpd runs."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class FrameSettings:
    """How this node listens to LLDP frames itself."""

    mode: FrameMode
    listen_s: float
    """How long until everybody has been heard; frames come every 30 s."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Everything that one collection depends on."""

    node_name: str
    """The node's name in the cluster, which is also the name of its report."""
    hostname: str
    sysfs_root: Path
    interfaces: tuple[str, ...]
    """Patterns of virtual interfaces that count as ports too; physical ones always do."""
    lldpcli: str
    lldpd_socket: str | None
    """None leaves it to lldpcli."""
    deadline_s: float
    """Of each command but the sweep."""
    max_output_bytes: int
    """Of each command but the sweep."""
    sweep: SweepSettings | None
    """None: this node does not sweep."""
    kind: DeviceKind = DeviceKind.HOST
    """A switch can run the agent too; it is no node of the cluster."""
    frames: FrameSettings | None = None
    """None: this node does not listen."""
    proc_root: Path = Path("/proc")
    """Where addresses of bonds' slaves stand that sysfs lacks."""
    ethtool: str = "ethtool"
    nvidia_smi: str = "nvidia-smi"


def max_sweep_time_s(settings: AgentSettings) -> float:
    """Return how long sweeps may take in one round, should every one run into its deadline."""
    return settings.sweep.deadline_s * _MAX_SWEEPS if settings.sweep else 0.0


def parse_delay(text: str) -> float:
    """Return the seconds of a duration, which may be 0; blanks around it are dropped.

    Raises:
        ConfigError: the text has another form.
    """
    return values.parse_delay(text.strip())


def parse_duration(text: str) -> float:
    """Return the seconds of a duration above 0; blanks around it are dropped.

    Raises:
        ConfigError: the text has another form, or means 0.
    """
    return values.parse_duration(text.strip())


def parse_size(text: str) -> int:
    """Return bytes of `4096B`, `512KiB`, `16MiB` or `1GiB`.

    Raises:
        ConfigError: another form, or zero.
    """
    found = _SIZE.match(text.strip())
    size = int(found[1]) * _BYTES[found[2]] if found else 0
    if not size:
        raise ConfigError(f"'{show(text)}' is no size such as 512KiB, 16MiB or 1GiB")
    return size


def parse_listen(text: str) -> Address:
    """Return the address of `HOST:PORT`, `[IPV6]:PORT` or `:PORT`; blanks around it are dropped.

    Raises:
        ConfigError: the text has another form.
    """
    return values.parse_address(text.strip(), values.LISTEN_ADDRESS)


def parse_argv(text: str) -> tuple[str, ...]:
    """Return the argv of a command line: words and quotes as in a shell, and nothing else of one.

    Raises:
        ConfigError: it is empty, or a quote is left open.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"'{show(text)}' is no command line: {error}") from error
    if not words or not words[0]:
        raise ConfigError("the command line is empty")
    return words


def parse_subnet(text: str) -> str:
    """Return a subnet prefix as 16 hex digits.

    Raises:
        ConfigError: it is none.
    """
    subnet = parse_guid(text)
    if subnet is None:
        raise ConfigError(f"'{show(text)}' is no subnet prefix such as {DEFAULT_SUBNET}")
    return subnet


def check_node_name(name: str) -> str:
    """Return the name when a cluster's node can have it.

    Raises:
        ConfigError: it cannot, so its report could not be stored.
    """
    checked = parse_node_name(name)
    if checked is None:
        raise ConfigError(
            f"'{show(name)}' cannot be a node's name: expected lower-case letters, digits, "
            "'-' and '.'; set --node-name"
        )
    return checked
