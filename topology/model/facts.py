"""Facts: what one source says about one device, and the findings about such facts.

Every class is frozen. A `Device` is what *one* source says; the package `join` joins sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.ids import Id

_WHOLE_PERCENT: Final = 9.5
"""From here on, a percentage is shown without decimals."""


class DeviceKind(StrEnum):
    """A host has an HCA or NIC, a switch forwards. LLDP alone often cannot distinguish them."""

    HOST = "host"
    SWITCH = "switch"
    ROUTER = "router"
    """Joins InfiniBand subnets; a path never passes through it."""
    AGGREGATION = "aggregation"
    """A SHARP aggregation node: a CA inside a switch, not a host."""
    UNKNOWN = "unknown"


class Medium(StrEnum):
    """The kind of link that a port or cable has."""

    ETHERNET = "ethernet"
    INFINIBAND = "infiniband"
    NVLINK = "nvlink"


class PortState(StrEnum):
    """Whether a port has a link."""

    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"


class GpuDistance(StrEnum):
    """PCIe distance from a port to the nearest GPU."""

    SWITCH = "same-switch"
    NUMA = "same-numa"
    OTHER = "other"


class Source(StrEnum):
    """The protocol that reported a neighbor."""

    LLDP = "lldp"
    CDP = "cdp"
    IB = "ib"
    OTHER = "other"


class Capability(StrEnum):
    """A function that a device says it has, in the order of the bits of its LLDP frames.

    Source: IEEE 802.1AB-2016 table 8-4.
    """

    OTHER = "other"
    REPEATER = "repeater"
    BRIDGE = "bridge"
    WLAN = "wlan"
    ROUTER = "router"
    TELEPHONE = "telephone"
    DOCSIS = "docsis"
    STATION = "station"


_CAPABILITIES: Final = tuple(Capability)


def sort_capabilities(capabilities: Iterable[Capability]) -> tuple[Capability, ...]:
    """Return capabilities without repeats, in the order of their bits."""
    chosen = frozenset(capabilities)
    return tuple(sorted(chosen, key=_CAPABILITIES.index))


class Neighbor(NamedTuple):
    """What one port reports about the other end of its cable: directed, may be wrong."""

    device_ids: tuple[Id, ...]
    """Sorted; empty if the other end sent no id that identifies it."""
    device_name: str
    """The name as sent; may be empty, hostile or shared by many devices."""
    port_ids: tuple[Id, ...]
    """Sorted."""
    port_name: str
    """The far port's name as its owner spells it, if the source reports that."""
    source: Source
    kind: DeviceKind = DeviceKind.UNKNOWN
    ttl_s: int | None = None
    capabilities: tuple[Capability, ...] = ()
    """The functions that the other end says it has enabled, in the order of `Capability`; empty if
    the source reports none."""


class Port(NamedTuple):
    """One port of a device."""

    name: str
    """`eth0`, `mlx5_0/1` (RDMA device and port number), `17` or `swp17` on switches."""
    ids: tuple[Id, ...] = ()
    """MAC, ifname, port GUID. An InfiniBand port also has its device's node GUID with the port
    number as the subtype; the other end of the cable identifies it so."""
    medium: Medium = Medium.ETHERNET
    state: PortState = PortState.UNKNOWN
    rate_bps: int | None = None
    bond_master: str | None = None
    rdma_device: str | None = None
    pci_address: str | None = None
    gpu_distance: GpuDistance | None = None
    neighbors: tuple[Neighbor, ...] = ()
    numa_node: int | None = None
    """None if the machine has only one NUMA node, or if it is unknown."""
    firmware_lldp: bool | None = None
    """Whether the card's own LLDP agent consumes the frames before the host sees them; None if
    unknown."""
    subnet: str | None = None
    """Prefix of its InfiniBand subnet, 16 hex digits."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device as one source describes it."""

    kind: DeviceKind
    name: str
    """The name as sent; for a host in ibnetdiscover output, the host part of the description, or
    empty."""
    ids: tuple[Id, ...]
    """Sorted."""
    ports: tuple[Port, ...] = ()
    """The ports in natural order of their names."""
    model: str = ""
    """Free text that describes the hardware; only for display."""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The output of a parser: the facts of every good line, and one error per bad line."""

    devices: Sequence[Device] = ()
    errors: tuple[ParseError, ...] = ()


class FindingKind(StrEnum):
    """What can be wrong with a fabric, or with the knowledge about it."""

    ONE_SIDED_LINK = "one-sided-link"
    SWAPPED_CABLE = "swapped-cable"
    WRONG_RAIL = "wrong-rail"
    LOST_SWITCH = "lost-switch"
    MISSING_LINK = "missing-link"
    HOST_ON_SPINE = "host-on-spine"
    AUX_SWITCH = "aux-switch"
    DUPLICATE_NAME = "duplicate-name"
    DUPLICATE_ID = "duplicate-id"
    UNRESOLVED_HOST = "unresolved-host"
    UNMATCHED_NODES = "unmatched-nodes"
    UNDECIDABLE = "undecidable"
    ISLAND = "island"
    SILENT_NODE = "silent-node"
    STALE_REPORT = "stale-report"
    GUESSED_KIND = "guessed-kind"
    SLOW_LINK = "slow-link"
    DOWN_PORT = "down-port"
    FLAPPING_LINK = "flapping-link"
    NO_LLDP = "no-lldp"
    SWEEP_REFUSED = "sweep-refused"
    SWEEP_IGNORED = "sweep-ignored"
    SWEEP_CONTRADICTED = "sweep-contradicted"
    SWEEPS_DISAGREE = "sweeps-disagree"
    UNUSABLE_REPORT = "unusable-report"
    NEAR_TIE = "near-tie"
    NOT_A_TREE = "not-a-tree"
    TIER_MISMATCH = "tier-mismatch"
    UNUSABLE_FIELD = "unusable-field"
    CUT_INPUT = "cut-input"
    DOMAIN_TOO_LARGE = "domain-too-large"
    OUTPUT_REFUSED = "output-refused"
    PLANE_UNKNOWN = "plane-unknown"
    PLANE_DOUBTFUL = "plane-doubtful"
    RANK_ORDER = "rank-order"


class Severity(StrEnum):
    """How much a finding matters to the tree or to jobs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class PortName(NamedTuple):
    """A port as people know it: the device's display name and the port's name."""

    device: str
    port: str
    """Empty if the finding is about the whole device."""


class Impact(NamedTuple):
    """What a finding costs.

    Shares are of the bandwidth of the devices that lost it: the ports of a host, the up-links of a
    leaf, and above the leaves the up-links of a domain, whose switches share their load.
    """

    cables: float | None = None
    """How many cables are gone or in the wrong port; a link at half of its rate is half a cable.
    None: the finding is not about cables."""
    share: float | None = None
    """0 to 1: these cables, of all that their devices should have."""
    gone_share: float | None = None
    """0 to 1: as `share`, with the cables of all other findings about these devices."""
    places: tuple[str, ...] = ()
    """The domains and nodes behind it, in the order of the tree; none is inside another one. A rule
    whose evidence has only some of its nodes names all of them here."""
    num_nodes: int = 0
    """The nodes in these places."""
    num_gpus: int | None = None
    """Their GPUs; None: unknown."""
    gangs: tuple[str, ...] | None = None
    """The running gangs that have pods there, sorted; None: unknown."""
    splits: bool = False
    """A part of the fabric has no cable to the rest."""
    hides: bool = False
    """Something cannot be seen because of it: where a node belongs, or whether a cable is there."""

    @property
    def weight(self) -> float:
        """The gain of mending the finding, in nodes; greater if less bandwidth is left."""
        if not self.share or self.gone_share is None:
            return 0.0
        return self.num_nodes * self.share / (1 - self.gone_share + self.share)


NO_IMPACT: Final = Impact()


A_LOST_SWITCH: Final = "a lost switch"
"""Stands for the far end of an absent cable of a lost switch without a name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or contradictory, with evidence and advice."""

    kind: FindingKind
    device: str
    port: str | None
    severity: Severity
    message: str
    """What was observed and what a person should do, in one or two sentences."""
    ports: tuple[PortName, ...] = ()
    """The ports that the finding is about."""
    swap: tuple[tuple[PortName, PortName], ...] = ()
    """Pairs of ports; exchanging the two cables of a pair resolves the finding."""
    since: str | None = None
    """RFC 3339 time of the first generation that showed it."""
    lost_name: str = ""
    """The name that a lost switch has by the names of its peers; empty if they do not show it."""
    impact: Impact = NO_IMPACT
    """What the finding costs; `topology.findings.impact` measures it."""

    @property
    def ends(self) -> tuple[PortName, ...]:
        """All ports that the finding names: its evidence, its own port, and those to exchange."""
        own = () if self.port is None else (PortName(self.device, self.port),)
        return (*self.ports, *own, *chain.from_iterable(self.swap))


def finding_about(
    kind: FindingKind, names: Sequence[str], *, severity: Severity, message: str
) -> Finding:
    """Return a finding about one or more whole devices; the first is its subject."""
    return Finding(
        kind=kind,
        device=names[0],
        port=None,
        severity=severity,
        message=message,
        ports=tuple(PortName(name, "") for name in names),
    )


SEVERITY_RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


UNPLACING_KINDS: Final = frozenset({FindingKind.PLANE_UNKNOWN, FindingKind.UNMATCHED_NODES})
"""While they last, nodes have no place in the tree, and what else is wrong there is not known."""


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repeats, the costliest first, as `rank_by_cost` says."""
    return tuple(sorted(set(findings), key=lambda row: rank_by_cost(row, row.impact)))


def rank_by_cost(finding: Finding, impact: Impact) -> tuple[object, ...]:
    """Return the sort key of a finding with this impact: the costliest has the lowest.

    The keys are, in this order: the severity, the nodes left without a place, whether the fabric is
    split, the bandwidth that mending restores, the affected gangs, the hidden nodes, and at last
    kind, device, port and message.
    """
    return (
        SEVERITY_RANK[finding.severity],
        -impact.num_nodes if finding.kind in UNPLACING_KINDS else 0,
        not impact.splits,
        -impact.weight,
        -(impact.share or 0.0),
        -len(impact.gangs or ()),
        -impact.num_nodes if impact.hides else 0,
        finding.kind,
        finding.device,
        finding.port or "",
        finding.message,
        finding.ports,
    )


def render_finding(finding: Finding) -> dict[str, Any]:
    """Return the finding as the object that `toponaut findings -o json` prints.

    A finding without ports has its subject as evidence.
    """
    ports = finding.ports or (PortName(finding.device, finding.port or ""),)
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "subject": {"device": finding.device, "port": finding.port},
        "message": finding.message,
        "evidence": {
            "ports": [{"device": end.device, "port": end.port} for end in ports],
            "swap": [
                [{"device": end.device, "port": end.port} for end in pair] for pair in finding.swap
            ],
        },
        "since": finding.since,
        "impact": render_impact(finding.impact),
    }


def render_impact(impact: Impact) -> dict[str, Any]:
    """Return the impact of a finding as JSON; null is unknown."""
    return {
        "cables": impact.cables,
        "share": impact.share,
        "goneShare": impact.gone_share,
        "places": list(impact.places),
        "nodes": impact.num_nodes,
        "gpus": impact.num_gpus,
        "gangs": None if impact.gangs is None else list(impact.gangs),
        "splits": impact.splits,
        "hides": impact.hides,
    }


def describe_impact(impact: Impact) -> str:
    """Return what a finding costs in a few words; empty if it costs nothing that is known.

    The text can follow the word "costs": `costs 12% of 8 nodes`.
    """
    nodes = show_number(impact.num_nodes, "node")
    costs = []
    if impact.splits:
        costs.append(f"{nodes if impact.num_nodes else 'a part'} cut off")
    if impact.share and impact.num_nodes:
        costs.append(f"{show_share(impact.share)} of {nodes}")
        if impact.gone_share and impact.gone_share > impact.share:
            costs.append(f"{show_share(impact.gone_share)} in all")
    if impact.hides and impact.num_nodes:
        costs.append(f"{nodes} not seen")
    if not costs and impact.num_nodes:
        costs.append(nodes)
    if costs and impact.num_gpus:
        costs.append(show_number(impact.num_gpus, "GPU"))
    if costs and impact.gangs:
        costs.append(show_number(len(impact.gangs), "gang"))
    return ", ".join(costs)


def show_number(num: int, noun: str) -> str:
    """Return a number with its noun: `1 port`, `1,024 ports`."""
    return f"{num:,} {noun}{'' if num == 1 else 's'}"


def show_share(share: float) -> str:
    """Return a share as a percentage of two digits: `12%`, `0.31%`."""
    percent = 100 * share
    return f"{percent:.0f}%" if percent >= _WHOLE_PERCENT else f"{percent:.2g}%"
