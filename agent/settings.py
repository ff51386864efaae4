"""The settings of the agent, and the parsers of their text.

Each setting is declared once: as a field, with its command-line option in the annotation.
`agent.cli.options` makes click options of the annotations; this module does not import click.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from runtime import values
from runtime.values import Address
from topology.model.errors import ConfigError, show
from topology.model.facts import DeviceKind
from topology.model.globs import find_glob_fault
from topology.model.ids import parse_guid, parse_node_name

DEFAULT_SUBNET: Final = "fe80000000000000"
"""The subnet prefix that a subnet manager uses if none is configured."""

_MAX_SWEEPS: Final = 16
"""The most subnets of one node: each of its HCAs may be in another subnet."""
_SIZE = re.compile(r"(\d{1,12})(B|KiB|MiB|GiB)\Z")
_BYTES: Final[Mapping[str, int]] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


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
    """Return the bytes of `4096B`, `512KiB`, `16MiB` or `1GiB`; blanks around it are dropped.

    Raises:
        ConfigError: the text has another form, or means 0.
    """
    match = _SIZE.match(text.strip())
    size = int(match[1]) * _BYTES[match[2]] if match else 0
    if not size:
        raise ConfigError(f"'{show(text)}' is not a size such as 512KiB, 16MiB or 1GiB")
    return size


def parse_listen(text: str) -> Address:
    """Return the address of `HOST:PORT`, `[IPV6]:PORT` or `:PORT`; blanks around it are dropped.

    Raises:
        ConfigError: the text has another form.
    """
    return values.parse_address(text.strip(), values.LISTEN_ADDRESS)


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


class Option(NamedTuple):
    """The command-line option that sets a field; part of the field's annotation.

    The field's type decides the rest: a `bool` is a flag, a tuple without `parse` can be given
    several times, a `Path` is a path.
    """

    flags: str
    """Such as `--verbose -v`; the long flag also gives the environment variable its name."""
    help: str
    default: str | None = None
    """As a user would write it; shown in the help."""
    parse: Callable[[str], object] | None = None
    """Turns the text into the value, and raises ConfigError; None keeps the text."""
    parse_each: Callable[[str], object] | None = None
    """Like `parse`, but for each value of an option that can be given several times."""
    choices: Sequence[str] = ()
    metavar: str | None = None
    type: object = None
    """A click type, if the field's own type is not enough."""
    other_env: str | None = None
    """A second environment variable, read if the option's own is not set."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSettings:
    """How this node sweeps InfiniBand subnets."""

    interval_s: Annotated[
        float,
        Option(
            "--sweep-every",
            "Minimum time from one sweep to the next; 0s sweeps with each collection.",
            default="5m",
            parse=parse_delay,
        ),
    ]
    command: Annotated[
        tuple[str, ...],
        Option(
            "--sweep-command",
            "The command that sweeps, with its arguments, such as 'ibnetdiscover -C mlx5_0 -P 1'. "
            "Words and quotes work as in a shell, but no shell runs. An elected node adds -C and "
            "-P.",
            default="ibnetdiscover",
            parse=parse_argv,
        ),
    ]
    """Prints the output format of ibnetdiscover. The device and port of a target are appended."""
    subnet: Annotated[
        str | None,
        Option(
            "--sweep-subnet",
            "Prefix of the subnet, 16 hex digits.  [default: the prefix of the local port's GID]",
            parse=parse_subnet,
        ),
    ]
    deadline_s: Annotated[
        float,
        Option("--sweep-deadline", "How long a sweep may run.", default="2m", parse=parse_duration),
    ]
    max_output_bytes: Annotated[
        int,
        Option(
            "--sweep-max-output", "How much a sweep may print.", default="256MiB", parse=parse_size
        ),
    ]
    targets: tuple[SweepTarget, ...] | None = None
    """The subnets that the node is elected for, in order; None for the command's own subnet."""


class FrameMode(StrEnum):
    """When this node listens to LLDP frames itself."""

    AUTO = "auto"
    """If no lldpd runs."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSettings:
    """How this node listens to LLDP frames itself."""

    mode: Annotated[
        FrameMode,
        Option(
            "--frames",
            "When to listen to LLDP frames without lldpd; auto listens if no lldpd runs. "
            "The agent sends no frames.",
            default=FrameMode.AUTO.value,
            parse=FrameMode,
            choices=[mode.value for mode in FrameMode],
        ),
    ]
    listen_s: Annotated[
        float,
        Option(
            "--listen-for",
            "How long to listen before the first report of neighbors; switches send frames every "
            "30 s. 0s turns listening off.",
            default="31s",
            parse=parse_delay,
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings that a collection depends on."""

    node_name: Annotated[
        str,
        Option(
            "--node-name",
            "Name of this node in the cluster.  [default: the short host name]",
            parse=check_node_name,
            other_env="NODE_NAME",
        ),
    ]
    """Also the name of its report."""
    hostname: Annotated[
        str,
        Option(
            "--hostname",
            "Host name that neighbors may report for this node.  [default: the node's name]",
        ),
    ]
    kind: Annotated[
        DeviceKind,
        Option(
            "--kind",
            "Kind of device that the agent runs on; a switch is not a node of the cluster.",
            default=DeviceKind.HOST.value,
            parse=DeviceKind,
            choices=(DeviceKind.HOST.value, DeviceKind.SWITCH.value),
        ),
    ]
    sysfs_root: Annotated[
        Path, Option("--sysfs-root", "Folder where sysfs is mounted.", default="/sys")
    ]
    proc_root: Annotated[
        Path, Option("--proc-root", "Folder where proc is mounted.", default="/proc")
    ]
    """Has the addresses of bond members that old kernels do not show in sysfs."""
    interfaces: Annotated[
        tuple[str, ...],
        Option(
            "--interfaces",
            "Virtual interfaces that count as ports, such as 'eth*'. Repeatable.",
            parse_each=parse_pattern,
            metavar="PATTERN",
        ),
    ]
    """Patterns of virtual interfaces; physical interfaces always count."""
    lldpcli: Annotated[
        str,
        Option(
            "--lldpcli",
            "The lldpcli program; its version must match the running lldpd.",
            default="lldpcli",
        ),
    ]
    lldpd_socket: Annotated[
        str | None,
        Option("--lldpd-socket -u", "Socket of lldpd.  [default: the default of lldpcli]"),
    ]
    ethtool: Annotated[
        str,
        Option(
            "--ethtool",
            "The ethtool program; used only for cards whose firmware can consume LLDP frames.",
            default="ethtool",
        ),
    ]
    nvidia_smi: Annotated[
        str,
        Option(
            "--nvidia-smi",
            "The nvidia-smi program; shows the NVLink domain of the GPUs.",
            default="nvidia-smi",
        ),
    ]
    nvlink: Annotated[
        NvlinkMode,
        Option(
            "--nvlink",
            "When to read the NVLink domain of the GPUs; auto reads it on nodes with NVIDIA GPUs, "
            "where a missing nvidia-smi is a failure.",
            default=NvlinkMode.AUTO.value,
            parse=NvlinkMode,
            choices=[mode.value for mode in NvlinkMode],
        ),
    ]
    frames: Annotated[FrameSettings | None, FrameSettings]
    """None if this node does not listen."""
    deadline_s: Annotated[
        float,
        Option(
            "--deadline",
            "How long a command may run; for sweeps, see --sweep-deadline.",
            default="10s",
            parse=parse_duration,
        ),
    ]
    max_output_bytes: Annotated[
        int,
        Option(
            "--max-output",
            "How much a command may print; for sweeps, see --sweep-max-output.",
            default="16MiB",
            parse=parse_size,
        ),
    ]
    sweep: SweepSettings | None
    """None if this node does not sweep."""


def max_sweep_time_s(settings: AgentSettings) -> float:
    """Return the longest time that the sweeps of a round can take: each until its deadline."""
    return settings.sweep.deadline_s * _MAX_SWEEPS if settings.sweep else 0.0
