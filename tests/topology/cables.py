"""Small fabrics described cable by cable, and the claims of their devices."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from tests.topology.verdicts import infer_from
from topology.inference.tree_inference import Inference
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Neighbor, Port, Source
from topology.model.ids import Id, IdKind

RATE = 400_000_000_000
End = tuple[str, str]
"""Device and port; host names start with `h`."""


def mac_of(device: str, port: str = "") -> str:
    digest = hashlib.sha256(f"{device} {port}".encode()).hexdigest()
    return ":".join(["02", *(digest[at : at + 2] for at in range(0, 10, 2))])


def is_host(device: str) -> bool:
    return device.startswith("h")


def star(leaf: str, hosts: Iterable[str], port: str = "eth0") -> list[tuple[End, End]]:
    """Return cables from one port of each host to a leaf."""
    return [((host, port), (leaf, f"to-{host}-{port}")) for host in hosts]


def mesh(lowers: Sequence[str], uppers: Sequence[str], parallel: int = 1) -> list[tuple[End, End]]:
    """Return cables from every lower switch to every upper one."""
    return [
        ((low, f"up-{high}-{at}"), (high, f"down-{low}-{at}"))
        for low in lowers
        for high in uppers
        for at in range(parallel)
    ]


def hosts(first: int, last: int) -> list[str]:
    return [f"h{number:02}" for number in range(first, last + 1)]


def port_ids(device: str, port: str) -> tuple[Id, ...]:
    if is_host(device):
        return (Id(IdKind.IFNAME, port), Id(IdKind.MAC, mac_of(device, port)))
    return (Id(IdKind.IFNAME, port),)


def heard_from(device: str, port: str, name: str | None = None) -> Neighbor:
    """Return the neighbor entry of an LLDP frame from a port."""
    return Neighbor(
        device_ids=(Id(IdKind.CHASSIS_ID, mac_of(device), "mac"),),
        device_name=device if name is None else name,
        port_ids=port_ids(device, port),
        port_name=port,
        source=Source.LLDP,
    )


def claims(cables: Iterable[tuple[End, End]], *, silent: Collection[str] = ()) -> list[Claim]:
    """Return the reports of agents and SNMP walks about these cables, without silent devices."""
    heard: dict[str, dict[str, list[Neighbor]]] = defaultdict(lambda: defaultdict(list))
    for end, far_end in cables:
        heard[end[0]][end[1]].append(heard_from(*far_end))
        heard[far_end[0]][far_end[1]].append(heard_from(*end))
    return [report(device, ports) for device, ports in heard.items() if device not in silent]


def report(device: str, ports: dict[str, list[Neighbor]]) -> Claim:
    """Return the claim of a device about itself and its neighbors."""
    ids = [Id(IdKind.CHASSIS_ID, mac_of(device), "mac")]
    ids += [Id(IdKind.NODE_NAME, device)] if is_host(device) else []
    kind = DeviceKind.HOST if is_host(device) else DeviceKind.SWITCH
    facts = tuple(
        Port(port, port_ids(device, port), rate_bps=RATE, neighbors=tuple(found))
        for port, found in ports.items()
    )
    return Claim(Device(kind, device, tuple(sorted(ids)), facts), Origin.REPORT)


def listed(name: str, *ids: Id) -> Claim:
    """Return the inventory's claim about a node."""
    own = tuple(sorted((Id(IdKind.NODE_NAME, name), *ids)))
    return Claim(Device(DeviceKind.HOST, name, own), Origin.INVENTORY)


def infer_cables(
    cables: Iterable[tuple[End, End]],
    *,
    silent: Collection[str] = (),
    more: Iterable[Claim] = (),
) -> Inference:
    """Return the inference of cables and of more claims."""
    return infer_from([*claims(cables, silent=silent), *more])


def of_kind(findings: Iterable[Finding], kind: FindingKind) -> list[Finding]:
    return [finding for finding in findings if finding.kind is kind]


def tiers_of(inference: Inference) -> list[dict[str, list[str]]]:
    """Return for each tier the nodes of every domain, by domain name."""
    return [
        {
            domain.name: list(inference.tree.nodes_of(domain))
            for domain in inference.tree.domains
            if domain.tier == tier
        }
        for tier in range(1, len(inference.tree.tiers) + 1)
    ]


def reason_of(inference: Inference, node: str) -> str:
    """Return the reason why a node is unplaced."""
    return next(gone.reason for gone in inference.tree.unplaced if gone.node == node)
