"""`toponaut describe`: all that is known about one node, switch, port, domain or gang."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from generator.cli import options
from generator.cli.commands.gangs.where import print_job
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import InputOptions, PodOptions
from generator.cli.output import WIDE, Table, list_nodes, print_document
from generator.kube.access import ClusterAccess
from topology.model.errors import ConfigError, ParseError, show
from topology.model.facts import DeviceKind, Finding, render_finding
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

if TYPE_CHECKING:
    from topology.model.fabric import Fabric, FabricDevice, Link
    from topology.model.fabric_columns import Flags
    from topology.planes.plane import PlaneSplit

_GANG: Final = "gang"
_KINDS: Final = ("node", "switch", "port", "domain", _GANG)
_PORT_HEADER: Final = ("port", "state", "rate", "plane", "rail", "connected to", "note")
_GBPS: Final = 1_000_000_000
_MAX_IDS: Final = 8
_MIN_RAILS: Final = 2
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_HOSTS: Final = frozenset({DeviceKind.HOST, DeviceKind.UNKNOWN})
NodesByGang = Mapping[str, Collection[str]]


@options.command("describe")
def command(
    *,
    kind: str = options.argument(type=click.Choice(_KINDS)),
    name: str = options.argument(),
    sources: InputOptions,
    pods: PodOptions,
    output: str = options.WIDE_OUTPUT,
) -> None:
    """Print all that is known about a node, a switch, a port, a domain or a gang.

    NAME is a name, or an id such as a GUID or a MAC; the name of a port is DEVICE:PORT, such as
    node-0001:mlx5_0/1. Pods come from --pods, from --running or, with --kube, from the cluster:
    they show which gangs run on a node, below a switch or in a domain. toponaut where prints the
    same about a gang, and also reads a saved tree.
    """
    from generator.cli.observation import parse_sources, read_observation
    from topology.join.fabric_join import build_fabric
    from topology.planes.plane import split_planes

    if kind == _GANG:
        print_job(name, sources, pods, output=output)
    pods.refuse_both()
    given = parse_sources(sources)
    if given.is_tree and kind != "domain":
        raise click.UsageError("HyperNodes and labels have no devices: give another source")
    read = read_observation(given)
    gangs, problems = _read_gangs(pods, given.cluster)
    describer = _FabricDescriber(
        read.split or split_planes(build_fabric(())),  # a tree has no devices
        read.observation.tree,
        read.observation.findings,
        gangs,
    )
    document = _describe(describer, kind, name)
    print_document(document, output, text=lambda: _list_parts(document, output))
    exit_with_problems((*read.problems, *problems))


def _read_gangs(
    given: PodOptions, cluster: ClusterAccess | None
) -> tuple[NodesByGang | None, Sequence[ParseError]]:
    """Return the nodes of each gang, or None if no source names pods, and the skipped pods.

    Raises:
        ConfigError: a file cannot be read, or has no pods.
        KubeError: the pods of the cluster cannot be listed.
    """
    from generator.cli.running_pods import read_pods

    pods = read_pods(given, cluster)
    if pods is None:
        return None, ()
    if pods.gangs is not None:
        return {row.gang: {pod.node for pod in row.pods} for row in pods.gangs}, ()
    return _group_by_gang(pods.documents), pods.problems


def _group_by_gang(pods: Iterable[Mapping[str, Any]]) -> NodesByGang:
    from generator.objects.pods import parse_gang_pod

    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        status = pod.get("status")
        if isinstance(status, dict) and status.get("phase") in _ENDED:
            continue
        found = parse_gang_pod(pod)
        if found is not None and found.gang:
            nodes[found.gang].add(found.node)
    return nodes


@dataclass(frozen=True, slots=True)
class _FabricDescriber:
    """A fabric, its tree and its findings."""

    split: PlaneSplit
    """The fabric, and the planes of its ports."""
    tree: TopologyTree
    findings: Sequence[Finding]
    gangs: NodesByGang | None = None
    """The nodes of each gang; None: unknown."""

    @property
    def fabric(self) -> Fabric:
        """All devices, ports and links."""
        return self.split.fabric

    def find_device(self, name: str, *, is_switch: bool) -> int | None:
        """Return the number of a host or a switch by its name, its node, or one of its ids."""
        candidates = [
            index
            for index, device in enumerate(self.fabric.devices)
            if (device.kind not in _HOSTS if is_switch else device.kind in _HOSTS)
        ]
        rows = self.fabric.devices
        named = [index for index in candidates if name in {rows[index].name, rows[index].node}]
        wanted = name.lower().removeprefix("0x")
        with_id = (
            index
            for index in candidates
            if any(row.value.lower().removeprefix("0x") == wanted for row in rows[index].ids)
        )
        return named[0] if named else next(with_id, None)

    def describe_device(self, device: int) -> dict[str, Any]:
        """Return a device: its ids, domains, ports with the other end of each cable, findings."""
        row = self.fabric.devices[device]
        home = self._home_of(row)
        unplaced = [one.reason for one in self.tree.unplaced if one.node in {row.name, row.node}]
        return {
            "name": row.name,
            "kind": row.kind.value,
            "node": row.node,
            "ids": [{"type": one.kind.value, "value": one.value} for one in row.ids],
            "domains": [] if home is None else self._render_tiers(home),
            "unplaced": unplaced[0] if unplaced else None,
            "jobs": self._list_jobs(self._list_nodes_at(device)),
            "ports": self._describe_ports(device),
            "findings": self._render_findings({row.name, row.node or row.name}),
        }

    def describe_port(self, device: int, port: str) -> dict[str, Any] | None:
        """Return a port of a device and its findings. None if the device has no such port."""
        row = self.fabric.devices[device]
        ports = [one for one in self._describe_ports(device) if one["name"] == port]
        if not ports:
            return None
        findings = [
            render_finding(finding) for finding in self.findings if (row.name, port) in finding.ends
        ]
        return {"device": row.name, **ports[0], "findings": findings}

    def describe_domain(self, name: str) -> dict[str, Any] | None:
        """Return a domain with all its nodes; None if the tree has no such domain."""
        names = [row.name for row in self.tree.domains]
        if name not in names:
            return None
        number = names.index(name)
        domain = self.tree.domains[number]
        nodes = self.tree.nodes_of(domain)
        inside = (
            row
            for row in self.tree.domains
            if domain.start <= row.start and row.stop <= domain.stop and row.tier <= domain.tier
        )
        switches = set(chain.from_iterable(row.switches for row in inside))
        return {
            "name": domain.name,
            "tier": self.tree.tiers[domain.tier - 1],
            "margin": domain.margin,
            "parents": self._render_tiers(number)[1:],
            "children": [self.tree.domains[child].name for child in domain.children],
            "nodes": list(nodes),
            "switches": list(domain.switches),
            "jobs": self._list_jobs(nodes),
            "findings": self._render_findings({*nodes, *switches}),
        }

    def _home_of(self, device: FabricDevice) -> int | None:
        """Return the lowest domain of a node, or the domain that a switch connects."""
        node = device.node or device.name
        numbered = enumerate(self.tree.domains)
        homes = (n for n, row in numbered if node in row.nodes or device.name in row.switches)
        return next(homes, None)

    def _render_tiers(self, number: int) -> list[dict[str, Any]]:
        """Return a domain and those above it, lowest first."""
        rows = [self.tree.domains[index] for index in self.tree.with_ancestors(number)]
        return [
            {"tier": self.tree.tiers[row.tier - 1], "name": row.name, "margin": row.margin}
            for row in rows
        ]

    def _render_findings(self, names: set[str]) -> list[dict[str, Any]]:
        return [
            render_finding(finding)
            for finding in self.findings
            if finding.device in names or any(end.device in names for end in finding.ends)
        ]

    def _describe_ports(self, device: int) -> list[dict[str, Any]]:
        numbers = [n for n, port in enumerate(self.fabric.ports) if port.device == device]
        links = self._links_of(set(numbers))
        planes = self.split.port_planes
        rails = number_rails(self.fabric, planes.is_in(self.tree.plane))
        rows = []
        for number in numbers:
            port, plane = self.fabric.ports[number], planes.get(number)
            row = {
                "name": port.name,
                "medium": port.medium.value,
                "state": port.state.value,
                "rateBps": port.rate_bps,
                "plane": plane.plane if plane else None,
                "rail": self._find_rail(number, links.get(number, ()), rails),
                "links": [self._render_link(link, number) for link in links.get(number, ())],
            }
            rows.append(row)
        return rows

    def _find_rail(self, port: int, links: Sequence[Link], rails: Mapping[int, int]) -> int | None:
        """Return the rail of a port of a host, or of the host at the other end of a cable."""
        peers = (link.b if link.a == port else link.a for link in links)
        return next((rails[end] for end in (port, *peers) if end in rails), None)

    def _list_jobs(self, nodes: Collection[str]) -> list[dict[str, Any]] | None:
        """Return the gangs with pods on some nodes, and on which of them, by name."""
        chosen = frozenset(nodes)
        return (
            None
            if self.gangs is None
            else [
                {"gang": gang, "nodes": sorted(chosen.intersection(members), key=natural_key)}
                for gang, members in sorted(self.gangs.items(), key=lambda row: natural_key(row[0]))
                if not chosen.isdisjoint(members)
            ]
        )

    def _list_nodes_at(self, device: int) -> list[str]:
        """Return the node that a host is, or the nodes with a cable to a switch."""
        ports = self.fabric.ports
        own = {n for n, port in enumerate(ports) if port.device == device}
        ends = ((link.a, link.b) for link in self.fabric.links)
        peers = {ports[b if a in own else a].device for a, b in ends if (a in own) != (b in own)}
        rows = [self.fabric.devices[index] for index in sorted({device, *peers})]
        is_host = self.fabric.devices[device].kind in _HOSTS
        chosen = [self.fabric.devices[device]] if is_host else rows
        return [row.node or row.name for row in chosen if row.kind in _HOSTS]

    def _links_of(self, ports: set[int]) -> dict[int, list[Link]]:
        found: dict[int, list[Link]] = {}
        for link in self.fabric.links:
            for end in (link.a, link.b):
                if end in ports:
                    found.setdefault(end, []).append(link)
        return found

    def _render_link(self, link: Link, port: int) -> dict[str, Any]:
        peer = self.fabric.port_name(link.b if link.a == port else link.a)
        return {
            "device": peer.device,
            "port": peer.port,
            "rateBps": link.rate_bps,
            "oneSided": link.is_one_sided,
            "disputed": link.is_disputed,
        }


def number_rails(fabric: Fabric, is_in_plane: Flags) -> dict[int, int]:
    """Return the rail of each port of a plane: the number of its name among those of most hosts.

    A fabric whose hosts have one port each, or share no names of ports, has no rails.

    Args:
        fabric: the ports.
        is_in_plane: one flag per port: whether a host has it in the plane.
    """
    import numpy as np

    from topology.model.fabric import columns_of
    from topology.model.fabric_columns import name_codes

    ports = np.flatnonzero(is_in_plane)
    codes, texts = name_codes(columns_of(fabric).port_names, ports)
    num_hosts = len(np.unique(columns_of(fabric).port_devices[ports]))
    counts = np.bincount(codes, minlength=len(texts)).tolist()
    usual = [text for text, count in zip(texts, counts, strict=True) if 2 * count >= num_hosts]
    if len(usual) < _MIN_RAILS:
        return {}
    rail_of = {text: number for number, text in enumerate(sorted(usual, key=natural_key), 1)}
    named = zip(ports.tolist(), codes.tolist(), strict=True)
    return {port: rail_of[texts[code]] for port, code in named if texts[code] in rail_of}


def _describe(describer: _FabricDescriber, kind: str, name: str) -> dict[str, Any]:
    """Return the document.

    Raises:
        ConfigError: there is no such thing.
    """
    found: dict[str, Any] | None
    if kind == "domain":
        found = describer.describe_domain(name)
    elif kind == "port":
        found = _describe_port(describer, name)
    else:
        device = describer.find_device(name, is_switch=kind == "switch")
        found = None if device is None else describer.describe_device(device)
    if found is None:
        raise ConfigError(f"there is no {kind} '{show(name)}' in these sources")
    return {"kind": kind, **found} if kind in {"port", "domain"} else found


def _describe_port(describer: _FabricDescriber, name: str) -> dict[str, Any] | None:
    """Return the port DEVICE:PORT; both names may contain colons."""
    places = [index for index, char in enumerate(name) if char == ":"]
    if not places:
        raise ConfigError(f"'{show(name)}': expected DEVICE:PORT, such as node-0001:mlx5_0/1")
    for place in places:
        for is_switch in (False, True):
            device = describer.find_device(name[:place], is_switch=is_switch)
            found = None if device is None else describer.describe_port(device, name[place + 1 :])
            if found is not None:
                return found
    return None


def _list_parts(document: Mapping[str, Any], output: str) -> Iterator[str | Table]:
    """Yield what text prints: fields, then domains, ports and findings."""
    yield from _render_fields(document, output)
    for title in ("domains", "parents"):
        for row in document.get(title, ()):
            yield f"{show(row['tier'])}: {show(row['name'])}{_show_margin(row['margin'])}"
    ports = document.get("ports", [document] if "state" in document else [])
    if ports:
        yield ""
        yield Table(_PORT_HEADER, [_render_port(port) for port in ports])
    yield ""
    findings: Sequence[Mapping[str, Any]] = document["findings"]
    rows = [(row["severity"], row["kind"], show(row["message"], 600)) for row in findings]
    yield Table(("severity", "finding", "what to do"), rows, empty="no findings")


def _render_fields(document: Mapping[str, Any], output: str) -> Iterator[str]:
    device = f" of {show(document['device'])}" if "device" in document else ""
    yield f"{document['kind']} {show(document['name'])}{device}"
    if document.get("node") not in {None, document["name"]}:
        yield f"node: {show(document['node'])}"
    if document.get("unplaced"):
        yield f"unplaced: {show(document['unplaced'], 400)}"
    if "tier" in document:
        yield f"tier: {show(document['tier'])}{_show_margin(document['margin'])}"
    for name in ("switches", "children", "nodes"):
        if document.get(name):
            yield f"{name}: {len(document[name])}: {list_nodes(document[name], output)}"
    if document.get("jobs") is not None:
        yield from _render_jobs(document["jobs"], output)
    ids = [f"{row['type']} {show(row['value'])}" for row in document.get("ids", ())]
    if ids:
        more = f" +{len(ids) - _MAX_IDS}" if len(ids) > _MAX_IDS and output != WIDE else ""
        yield f"ids: {', '.join(ids[:_MAX_IDS] if more else ids)}{more}"


def _render_jobs(jobs: Sequence[Mapping[str, Any]], output: str) -> Iterator[str]:
    for row in jobs:
        yield f"job: {show(row['gang'])} on {list_nodes(row['nodes'], output)}"
    if not jobs:
        yield "no jobs"


def _show_margin(margin: float) -> str:
    return f" (margin {margin:g})" if margin < 1 else ""


def _render_port(port: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one port."""
    links = port["links"]
    peers = ", ".join(f"{show(link['device'])} port {show(link['port'])}" for link in links)
    notes = [
        note
        for field, note in (("oneSided", "one-sided"), ("disputed", "disputed"))
        if any(link[field] for link in links)
    ]
    rate = port["rateBps"] or next((link["rateBps"] for link in links if link["rateBps"]), None)
    return (
        *(show(port["name"]), port["state"], f"{rate / _GBPS:g} Gb/s" if rate else "-"),
        *(show(port["plane"] or "-"), str(port["rail"] or "-"), peers or "-", ", ".join(notes)),
    )
