"""Ports whose interface is in another network namespace, such as that of a pod: they stay ports.

`/sys/class/net` shows one namespace only. A pod that takes an interface does not change its cable,
so the port and the neighbor that it heard last are kept, as long as the function is on PCI with
its driver and no interface of it is here. A port that was never seen with its interface is reported
as its RDMA device shows it, without a neighbor; whether it hears one is unknown, and so is its
state.

Source: kubernetes-sigs/dranet (README and issues 177 and 342) moves the interface of the host into
a pod, and leaves the RDMA device if RDMA is shared (`rdma system show`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from agent.collectors.probe import CollectedFacts
from agent.node.pci import list_driven_cards
from agent.node.sysfs import Sysfs
from topology.model.errors import list_some, show
from topology.model.facts import Medium, Port, PortState
from topology.model.ids import IdKind

_MAX_SHOWN: Final = 8


def keep_hidden_ports(
    root: Sysfs, seen: CollectedFacts, rdma: CollectedFacts, known: CollectedFacts
) -> CollectedFacts:
    """Add the ports that another namespace hides to the facts of the interfaces.

    Args:
        root: the sysfs tree.
        seen: the facts of the interfaces now.
        rdma: the facts of the RDMA devices now.
        known: the last facts of the interfaces.
    """
    by_rdma = {port.rdma_device: port for port in rdma.hidden_ports}
    driven = {*list_driven_cards(root), *(port.pci_address for port in rdma.hidden_ports)}
    kept = [_update(port, by_rdma) for port in _find_kept(driven, seen, known)]
    places = {port.pci_address for port in (*kept, *seen.ports)}
    unseen = [
        port._replace(state=PortState.UNKNOWN)
        for port in rdma.hidden_ports
        if port.state is PortState.UP and port.pci_address not in places
    ]
    hidden = (*kept, *unseen)
    if not hidden:
        return seen
    shown = list_some((show(port.name) for port in hidden), _MAX_SHOWN)
    notes = (seen.note, f"in another network namespace, such as that of a pod: {shown}")
    return replace(
        seen,
        ids=seen.ids.union(id_ for port in hidden for id_ in port.ids if id_.kind is IdKind.MAC),
        ports=(*seen.ports, *hidden),
        excluded=seen.excluded - {port.name for port in hidden},
        hidden_ports=hidden,
        note="; ".join(filter(None, notes)),
    )


def keep_last_neighbors(
    heard: CollectedFacts, known: CollectedFacts, hidden: Collection[str]
) -> CollectedFacts:
    """Add the last neighbors of hidden ports to the neighbors of each port.

    Args:
        heard: the facts of a collector of neighbors now.
        known: its last facts.
        hidden: the names of the hidden ports.
    """
    names = {port.name for port in heard.ports}
    kept = [port for port in known.ports if port.name in hidden and port.name not in names]
    return replace(heard, ports=(*heard.ports, *kept)) if kept else heard


def _find_kept(
    driven: Collection[str | None], seen: CollectedFacts, known: CollectedFacts
) -> list[Port]:
    """Return the last known ports whose PCI function is present and shows no interface.

    A new name at the same function is the same port, renamed. A port that shares an id with a kept
    port is the same port, seen through another function.

    Args:
        driven: addresses of the functions that are present, with their driver.
        seen: the facts of the interfaces now.
        known: the last facts of the interfaces.
    """
    last_names = {port.name for port in known.ports}
    names = {port.name for port in seen.ports}
    ids = {id_ for port in seen.ports for id_ in port.ids}
    renamed = {port.pci_address for port in seen.ports if port.name not in last_names}
    return [
        port
        for port in known.ports
        if port.medium is Medium.ETHERNET
        and port.name not in names
        and port.pci_address
        and port.pci_address in driven
        and port.pci_address not in renamed
        and ids.isdisjoint(port.ids)
    ]


def _update(port: Port, by_rdma: Mapping[str | None, Port]) -> Port:
    """Return a kept port with the state and rate that its RDMA device shows, if there is one."""
    shown = by_rdma.get(port.rdma_device)
    if shown is None:
        return port._replace(state=PortState.UNKNOWN)
    return port._replace(state=shown.state, rate_bps=shown.rate_bps or port.rate_bps)
