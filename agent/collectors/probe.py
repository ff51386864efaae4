"""The interface that every collector implements: its functions, its facts and its errors."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from agent.node.command import Runner
from agent.settings import AgentSettings
from topology.model.errors import CollectError, ParseError
from topology.model.facts import Device, GpuDistance, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind

_DISTANCES: Final = tuple(GpuDistance)
"""From near to far."""
MAX_IDS: Final = 64
"""The most ids of one neighbor: a frame can hold more management addresses than a report. The
chassis id sorts before them."""


class SourceAbsent(CollectError):  # noqa: N818 - reads as what happened
    """The collector's source is not on this node: no such program, daemon or hardware.

    This is not a failure on a node that never had the source. It is a failure if the node shows
    that the source should be there. A node that had it and lost it keeps the last facts.
    """

    def __init__(self, reason: str, evidence: str = "") -> None:
        """Say why the source is not there.

        Args:
            reason: what is missing.
            evidence: what shows that the source should be there, such as `this node has 4 NVIDIA
                GPUs`; empty if nothing does.
        """
        super().__init__(f"{reason}, although {evidence}" if evidence else reason)
        self.is_expected = bool(evidence)


class SourceCutOff(CollectError):  # noqa: N818 - reads as what happened
    """The source was mounted, then deleted on the node: only a restart mounts its replacement."""


class SweepFailed(CollectError):  # noqa: N818 - reads as what happened
    """No subnet could be swept."""

    def __init__(
        self, problem: str, *, failed: tuple[str, ...] = (), refused: tuple[str, ...] = ()
    ) -> None:
        """Keep the subnets that failed, and the subnets that let every query time out."""
        super().__init__(problem)
        self.failed = failed
        self.refused = refused


class SweepDump(NamedTuple):
    """An InfiniBand subnet as this node's sweep saw it."""

    subnet: str
    text: str
    """Canonical, so equal fabrics give equal bytes."""


@dataclass(frozen=True, slots=True)
class CollectedFacts:
    """The facts of one collector. Empty facts are an answer: the node has nothing to report."""

    ids: frozenset[Id] = frozenset()
    """Ids of the node itself."""
    ports: tuple[Port, ...] = ()
    """The facts of all collectors that name the same port are joined."""
    excluded: frozenset[str] = frozenset()
    """Interfaces that are not the end of a cable; no other collector may make ports of them."""
    repeated_macs: frozenset[str] = frozenset()
    """Addresses of interfaces that every machine of a kind has: they identify no node."""
    port_of: frozenset[tuple[str, str]] = frozenset()
    """(interface, port) pairs of interfaces that show the port of another interface."""
    rdma_of_net: frozenset[tuple[str, str]] = frozenset()
    """(interface, RDMA device) pairs."""
    hidden_ports: tuple[Port, ...] = ()
    """Ports without an interface in this network namespace: another one may have it."""
    sweeps: tuple[SweepDump, ...] = ()
    """One entry per subnet."""
    failed_subnets: tuple[str, ...] = ()
    """Subnets that this run could not sweep."""
    refused_subnets: tuple[str, ...] = ()
    """Subnets in which every query of this run timed out."""
    errors: tuple[ParseError, ...] = ()
    """Parts of the input that could not be read."""
    note: str = field(default="", compare=False)
    """A note for the operator: why nothing was found, or what is missing."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no facts."""
        return not (self.ids or self.ports or self.sweeps)


def merge_ports(first: Port, second: Port) -> Port:
    """Return one port with the facts of both, and the name of the first."""
    is_known = first.state is not PortState.UNKNOWN
    distances = [port.gpu_distance for port in (first, second) if port.gpu_distance]
    return first._replace(
        ids=tuple(sorted({*first.ids, *second.ids})),
        state=first.state if is_known else second.state,
        rate_bps=first.rate_bps or second.rate_bps,
        bond_master=first.bond_master or second.bond_master,
        rdma_device=first.rdma_device or second.rdma_device,
        pci_address=first.pci_address or second.pci_address,
        gpu_distance=min(distances, key=_DISTANCES.index, default=None),
        numa_node=second.numa_node if first.numa_node is None else first.numa_node,
        firmware_lldp=second.firmware_lldp if first.firmware_lldp is None else first.firmware_lldp,
        subnet=first.subnet or second.subnet,
        neighbors=tuple(sorted({*first.neighbors, *second.neighbors}, key=repr)),
    )


def build_heard_port(name: str, neighbors: Iterable[Neighbor]) -> Port:
    """Return an Ethernet port that hears neighbors, each with `MAX_IDS` ids at most."""
    limited = tuple(
        neighbor._replace(device_ids=neighbor.device_ids[:MAX_IDS]) for neighbor in neighbors
    )
    return Port(name, (Id(IdKind.IFNAME, name),), medium=Medium.ETHERNET, neighbors=limited)


def restore_heard_ports(device: Device, sources: Container[Source]) -> tuple[Port, ...]:
    """Return the Ethernet ports of a report that hear neighbors of these sources; drop others."""
    heard = (
        (port.name, [neighbor for neighbor in port.neighbors if neighbor.source in sources])
        for port in device.ports
        if port.medium is Medium.ETHERNET
    )
    return tuple(build_heard_port(name, neighbors) for name, neighbors in heard if neighbors)


Collect: TypeAlias = Callable[[AgentSettings, Runner], CollectedFacts]
"""Returns the facts. Raises CollectError if the source fails, SourceAbsent without a source."""


class Collector(NamedTuple):
    """One source of facts. Collectors know nothing of each other."""

    collect: Collect
    find_absence: Callable[[AgentSettings, Runner], SourceAbsent | None]
    """Returns cheaply why the source is not on this node; None if it seems to be."""
    restore: Callable[[Device], CollectedFacts]
    """Returns the facts of this collector from a published report."""
