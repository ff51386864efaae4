"""The settings of the agent, and the parsers of their text.

Each setting is declared once: as a field, with its command-line option. Each option has an
environment variable: `TOPONAUT_AGENT_` and the option's name in capitals. The variable of an option
that can be given several times holds its values separated by blanks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from agent.node.command import CommandLimits
from runtime import values
from runtime.options import Choice, group, option, refusing
from runtime.values import Address
from topology.model.errors import ConfigError, show
from topology.model.facts import DeviceKind
from topology.model.globs import find_glob_fault
from topology.model.ids import parse_guid, parse_node_name

DEFAULT_SUBNET: Final = "fe80000000000000"
"""The subnet prefix that a subnet manager uses if none is configured."""

ValueT = TypeVar("ValueT")
_MAX_SWEEPS: Final = 16
"""The most subnets of one node: each of its HCAs may be in another subnet."""
_SIZE = re.compile(r"(\d{1,12})(B|KiB|MiB|GiB)\Z")
_BYTES: Final[Mapping[str, int]] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _without_blanks(parse: Callable[[str], ValueT]) -> Callable[[str], ValueT]:
    """Return the parser of a text whose outer blanks do not count."""

    @wraps(parse)
    def parse_stripped(text: str) -> ValueT:
        return parse(text.strip())

    return parse_stripped


parse_delay: Final = _without_blanks(values.parse_delay)
parse_duration: Final = _without_blanks(values.parse_duration)


@_without_blanks
def parse_listen(text: str) -> Address:
    """Return the address of `HOST:PORT`, `[IPV6]:PORT` or `:PORT`."""
    return values.parse_address(text, values.LISTEN_ADDRESS)


def parse_size(text: str) -> int:
    """Return the bytes of `4096B`, `512KiB`, `16MiB` or `1GiB`; blanks around it are dropped.

    Raises:
        ConfigError: the text has another form, or means 0.
    """
    match = _SIZE.match(text.strip())
    size = int(match[1]) * _BYTES[match[2]] if match else 0
    if not size:
        raise ConfigError(f"'{show(text)}' is not a size such as 512KiB, 16MiB or 1GiB")
    return size


def parse_argv(text: str) -> tuple[str, ...]:
    """Return the argv of a command line: words and quotes as in a shell, and no other shell syntax.

    Raises:
        ConfigError: the text is empty, or a quote is not closed.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"'{show(text)}' is not a command line: {error}") from error
    if not words or not words[0]:
        raise ConfigError("the command line is empty")
    return words


def parse_subnet(text: str) -> str:
    """Return a subnet prefix as 16 hex digits.

    Raises:
        ConfigError: the text is not a subnet prefix.
    """
    subnet = parse_guid(text)
    if subnet is None:
        raise ConfigError(f"'{show(text)}' is not a subnet prefix such as {DEFAULT_SUBNET}")
    return subnet


def parse_pattern(text: str) -> str:
    """Return a pattern of interface names unchanged.

    Raises:
        ConfigError: it would match nothing, or not what it seems to.
    """
    fault = find_glob_fault(text) if text else "is empty"
    if fault is not None:
        raise ConfigError(f"pattern '{show(text)}' {fault}")
    return text


def check_node_name(name: str) -> str:
    """Return the name if it is valid for a node of a cluster.

    Raises:
        ConfigError: it is not valid, so the node's report could not be stored.
    """
    checked = parse_node_name(name)
    if checked is None:
        raise ConfigError(
            f"'{show(name)}' cannot be a node's name: expected lower-case letters, digits, "
            "'-' and '.'; set --node-name"
        )
    return checked


def parsed(help: str, *flags: str, by: Callable[[str], object], **settings: Any) -> Any:  # noqa: A002, ANN401 - click's
    """Declare an option whose text a function turns into the value, or refuses by ConfigError."""
    return option(help, *flags, type=refusing(by), **{"metavar": "TEXT"} | settings)


class SweepMode(StrEnum):
    """When this node sweeps InfiniBand subnets."""

    ALWAYS = "always"
    ELECTED = "elected"
    """If the Fabric object of the store or the cluster elects this node."""
    NEVER = "never"


class NvlinkMode(StrEnum):
    """When this node reads the NVLink domain of its GPUs."""

    AUTO = "auto"
    """If it has GPUs of NVIDIA."""
    NEVER = "never"


class SweepTarget(NamedTuple):
    """A subnet that this node is elected to sweep, and the port to sweep it from."""

    subnet: str
    """Prefix, 16 hex digits."""
    device: str
    port: int


class SweepSettings(NamedTuple):
    """How this node sweeps InfiniBand subnets."""

    interval_s: float = parsed(
        "Minimum time from one sweep to the next; 0s sweeps with each collection.",
        "--sweep-every",
        default="5m",
        by=parse_delay,
    )
    command: tuple[str, ...] = parsed(
        "The command that sweeps, with its arguments, such as 'ibnetdiscover -C mlx5_0 -P 1'. "
        "Words and quotes work as in a shell, but no shell runs. An elected node adds -C and -P.",
        "--sweep-command",
        default="ibnetdiscover",
        multiple=False,
        by=parse_argv,
    )
    """Prints the output format of ibnetdiscover. The device and port of a target are appended."""
    subnet: str | None = parsed(
        "Prefix of the subnet, 16 hex digits.  [default: the prefix of the local port's GID]",
        "--sweep-subnet",
        by=parse_subnet,
    )
    deadline_s: float = parsed(
        "How long a sweep may run.", "--sweep-deadline", default="2m", by=parse_duration
    )
    max_output_bytes: int = parsed(
        "How much a sweep may print.", "--sweep-max-output", default="256MiB", by=parse_size
    )
    targets: tuple[SweepTarget, ...] | None = None
    """The subnets that the node is elected for, in order; None for the command's own subnet."""


class FrameMode(StrEnum):
    """When this node listens to LLDP frames itself."""

    AUTO = "auto"
    """If no lldpd runs."""
    ALWAYS = "always"
    NEVER = "never"


class FrameSettings(NamedTuple):
    """How this node listens to LLDP frames itself."""

    mode: FrameMode = option(
        "When to listen to LLDP frames without lldpd; auto listens if no lldpd runs. "
        "The agent sends no frames.",
        "--frames",
        default=FrameMode.AUTO.value,
    )
    listen_s: float = parsed(
        "How long to listen before the first report of neighbors; switches send frames every "
        "30 s. 0s turns listening off.",
        "--listen-for",
        default="31s",
        by=parse_delay,
    )


class AgentSettings(NamedTuple):
    """The settings that a collection depends on."""

    node_name: str = parsed(
        "Name of this node in the cluster.  [default: the short host name]",
        envvar=["TOPONAUT_AGENT_NODE_NAME", "NODE_NAME"],
        by=check_node_name,
    )
    """Also the name of its report."""
    hostname: str = option(
        "Host name that neighbors may report for this node.  [default: the node's name]"
    )
    kind: DeviceKind = option(
        "Kind of device that the agent runs on; a switch is not a node of the cluster.",
        default=DeviceKind.HOST.value,
        type=Choice([DeviceKind.HOST.value, DeviceKind.SWITCH.value]),
    )
    sysfs_root: Path = option("Folder where sysfs is mounted.", default="/sys")
    proc_root: Path = option("Folder where proc is mounted.", default="/proc")
    """Has the addresses of bond members that old kernels do not show in sysfs."""
    interfaces: tuple[str, ...] = parsed(
        "Virtual interfaces that count as ports, such as 'eth*'. Repeatable.",
        metavar="PATTERN",
        by=parse_pattern,
    )
    """Patterns of virtual interfaces; physical interfaces always count."""
    lldpcli: str = option(
        "The lldpcli program; its version must match the running lldpd.", default="lldpcli"
    )
    lldpd_socket: str | None = option(
        "Socket of lldpd.  [default: the default of lldpcli]", "--lldpd-socket", "-u"
    )
    ethtool: str = option(
        "The ethtool program; used only for cards whose firmware can consume LLDP frames.",
        default="ethtool",
    )
    nvidia_smi: str = option(
        "The nvidia-smi program; shows the NVLink domain of the GPUs.", default="nvidia-smi"
    )
    nvlink: NvlinkMode = option(
        "When to read the NVLink domain of the GPUs; auto reads it on nodes with NVIDIA GPUs, "
        "where a missing nvidia-smi is a failure.",
        default=NvlinkMode.AUTO.value,
    )
    frames: FrameSettings | None = group()
    """None if this node does not listen."""
    deadline_s: float = parsed(
        "How long a command may run; for sweeps, see --sweep-deadline.",
        "--deadline",
        default="10s",
        by=parse_duration,
    )
    max_output_bytes: int = parsed(
        "How much a command may print; for sweeps, see --sweep-max-output.",
        "--max-output",
        default="16MiB",
        by=parse_size,
    )
    sweep: SweepSettings | None = None
    """None if this node does not sweep."""

    @property
    def limits(self) -> CommandLimits:
        """The limits of each command but sweeps."""
        return CommandLimits(self.deadline_s, self.max_output_bytes)


def max_sweep_time_s(settings: AgentSettings) -> float:
    """Return the longest time that the sweeps of a round can take: each until its deadline."""
    return settings.sweep.deadline_s * _MAX_SWEEPS if settings.sweep else 0.0
