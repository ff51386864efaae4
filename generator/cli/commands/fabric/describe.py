"""`toponaut describe`: all that is known about one node, switch, port, domain or gang."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.option_types import is_input_file
from generator.cli.options import NO_PODS_MESSAGE, InputOptions, PodOptions
from generator.cli.output import WIDE, Table, list_nodes, print_document, show_rate
from runtime.options import Choice, suggest_names
from topology.model.cabling_plan import show_end
from topology.model.errors import ConfigError, show
from topology.model.facts import (
    A_LOST_SWITCH,
    DeviceKind,
    Finding,
    FindingKind,
    PortName,
    render_finding,
)
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

if TYPE_CHECKING:
    from generator.cli.running_pods import NodesByGang
    from topology.model.fabric import Fabric, FabricDevice, Link
    from topology.planes.plane_split import PlaneSplit

_GANG: Final = "gang"
_KINDS: Final = ("node", "switch", "port", "domain", _GANG)
_PORT_HEADER: Final = ("port", "state", "rate", "plane", "rail", "connected to", "note")
_MAX_IDS: Final = 8
_MAX_PORTS: Final = 20
"""Ports with findings that text lists of a domain."""
_ABSENT: Final = "absent"
"""The state of a port that no source reports."""
_HOSTS: Final = frozenset({DeviceKind.HOST, DeviceKind.UNKNOWN})


class _KindArgument(click.Argument):
    """The kind, which may be missing: then the first word is the name."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Move the words by one place unless the first one is a kind with a name behind it."""
        kind, name = opts.get("kind"), opts.get("name")
        if isinstance(kind, str) and not (kind in _KINDS and isinstance(name, str)):
            files = opts.get("files")
            words = (name, *(files if isinstance(files, tuple) else ()))
            moved = tuple(word for word in words if isinstance(word, str))
            if isinstance(name, str) and not (ctx.resilient_parsing or is_input_file(name)):
                kinds = f"{', '.join(_KINDS[:-1])} or {_KINDS[-1]}"
                raise click.UsageError(
                    f"there is no file '{show(name)}' and no kind '{show(kind)}': use {kinds}", ctx
                )
            words_of = cast("dict[str, Any]", opts)  # the arguments behind this one read it too
            words_of |= {"kind": None, "name": kind, "files": moved}
        return super().handle_parse_result(ctx, opts, args)


@options.command(
    "describe",
    examples=(
        "toponaut describe node-0050 --reports fabric/reports",
        "toponaut describe gang ml/train --kube",
    ),
)
def command(
    *,
    kind: str | None = options.argument(cls=_KindArgument, type=Choice(_KINDS), required=False),
    name: str = options.argument(),
    sources: InputOptions,
    pods: PodOptions,
    output: str = options.WIDE_OUTPUT,
) -> None:
    """Print all that is known about a node, a switch, a port, a domain or a gang.

    NAME is a name, or an id such as a GUID or a MAC. A domain is also found by the names that
    outputs write, such as the value of its label, and a port by DEVICE:PORT, such as
    node-0001:mlx5_0/1. Where NAME means several things, such as a switch and the domain below it,
    the answer lists them, and the kind chooses. Pods come from --pods, from --running or, with
    --kube, from the cluster: they show which gangs run on a node, below a switch or in a domain.
    toponaut where prints the same about a gang, and also reads a saved tree.
    """
    from generator.cli.commands.gangs.where import find_given_job, print_job
    from generator.cli.observation import parse_sources, read_observation
    from generator.cli.running_pods import read_pods
    from topology.join.fabric_join import build_fabric
    from topology.planes.plane_split import split_planes

    pods.refuse_both()
    if kind is None and name in _KINDS:
        raise click.UsageError(f"give the name of the {name}: toponaut describe {name} NAME")
    given = parse_sources(sources)
    if given.is_tree and kind not in {"domain", _GANG, None}:
        raise click.UsageError("HyperNodes and labels have no devices: give another source")
    loaded = read_pods(pods, given.cluster)
    if kind == _GANG and loaded is None:
        raise click.UsageError(NO_PODS_MESSAGE)
    read = read_observation(given)
    describer = _FabricDescriber(
        read.split or split_planes(build_fabric(())),  # a tree has no devices
        read.observation.tree,
        read.observation.findings,
        None if loaded is None else loaded.list_gang_nodes(),
    )
    chosen = _choose_kind(describer, name) if kind is None else (kind, name)
    if chosen[0] == _GANG:
        job = find_given_job(chosen[1], pods, given.cluster, loaded)
        print_job(job, read, given, output=output)
    document = _describe(describer, *chosen)
    print_document(document, output, text=lambda: _list_parts(document, output))
    exit_with_problems((*read.problems, *(() if loaded is None else loaded.problems)))


def _choose_kind(describer: _FabricDescriber, name: str) -> tuple[str, str]:
    """Return the kind of thing that a name means, and the thing's name in that kind.

    Raises:
        ConfigError: it means nothing, or several things.
    """
    found = describer.find_meanings(name)
    if len(found) == 1:
        return found[0]
    if found:
        choices = " or ".join(f"toponaut describe {kind} {show(name)}" for kind, name in found)
        raise ConfigError(f"'{show(name)}' has several meanings; run {choices}")
    known = (name for kind in _KINDS for name in describer.list_names(kind))
    raise ConfigError(
        f"there is no node, switch, domain or gang '{show(name)}' in these sources"
        f"{suggest_names(name, dict.fromkeys(known))}"
    )


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
        return next(iter(self._find_devices(name, is_switch=is_switch)), None)

    def _find_devices(self, name: str, *, is_switch: bool) -> list[int]:
        """Return the devices with a name or a node; without any, those with an id."""
        wanted = name.lower().removeprefix("0x")
        named, with_id = [], []
        for index, row in enumerate(self.fabric.devices):
            if (row.kind in _HOSTS) is is_switch:
                continue
            if name in {row.name, row.node}:
                named.append(index)
            elif wanted in {identifier.value.lower().removeprefix("0x") for identifier in row.ids}:
                with_id.append(index)
        return named or with_id

    def find_meanings(self, name: str) -> list[tuple[str, str]]:
        """Return the kind and the name of each thing that a name or an id means.

        A port is looked for only if nothing else has the name.
        """
        from generator.outputs.domain_names import find_domain

        devices = self.fabric.devices
        found = [
            (kind, devices[index].name)
            for kind, is_switch in (("node", False), ("switch", True))
            for index in self._find_devices(name, is_switch=is_switch)
        ]
        domain = find_domain(self.tree, name)
        found += [] if domain is None else [("domain", self.tree.domains[domain].name)]
        found += [(_GANG, gang) for gang in self.list_names(_GANG) if name in _name_gang(gang)]
        if not found and ":" in name and _find_port(self, name) is not None:
            return [("port", name)]
        return list(dict.fromkeys(found))

    def list_names(self, kind: str) -> list[str]:
        """Return the names of the nodes, switches, domains or gangs; of ports, none."""
        if kind == "domain":
            return [row.name for row in self.tree.domains]
        if kind == _GANG:
            return sorted(self.gangs or (), key=natural_key)
        return [
            row.name
            for row in self.fabric.devices
            if kind != "port" and (row.kind in _HOSTS) == (kind == "node")
        ]

    def describe_device(self, device: int) -> dict[str, Any]:
        """Return a device: its ids, domains, ports with the other end of each cable, findings."""
        row = self.fabric.devices[device]
        home = self._home_of(row)
        unplaced = [
            unplaced_node.reason
            for unplaced_node in self.tree.unplaced
            if unplaced_node.node in {row.name, row.node}
        ]
        return {
            "name": row.name,
            "kind": row.kind.value,
            "node": row.node,
            "ids": [
                {"type": identifier.kind.value, "value": identifier.value} for identifier in row.ids
            ],
            "domains": [] if home is None else self._render_tiers(home),
            "unplaced": unplaced[0] if unplaced else None,
            "jobs": self._list_jobs(self._list_nodes_at(device)),
            "ports": self._describe_ports(device),
            "findings": self._render_findings({row.name, row.node or row.name}),
        }

    def describe_port(self, device: int, port: str) -> dict[str, Any] | None:
        """Return a port of a device and its findings. None if the device has no such port."""
        row = self.fabric.devices[device]
        ports = [row for row in self._describe_ports(device) if row["name"] == port]
        if not ports:
            return None
        findings = [
            render_finding(finding) for finding in self.findings if (row.name, port) in finding.ends
        ]
        return {"device": row.name, **ports[0], "findings": findings}

    def describe_domain(self, name: str) -> dict[str, Any] | None:
        """Return a domain with all its nodes; None if the tree has no such domain."""
        from generator.outputs.domain_names import find_domain, list_other_names

        number = find_domain(self.tree, name)
        if number is None:
            return None
        domain = self.tree.domains[number]
        nodes = self.tree.nodes_of(domain)
        inside = (self.tree.domains[index] for index in self.tree.with_descendants(number))
        devices = {*nodes, *chain.from_iterable(row.switches for row in inside)}
        devices |= {row.name for row in self.fabric.devices if row.node in devices}
        kinds = self._find_kinds(devices)
        return {
            "name": domain.name,
            "otherNames": list(list_other_names(self.tree)[domain.name]),
            "tier": self.tree.tiers[domain.tier - 1],
            "margin": domain.margin,
            "parents": self._render_tiers(number)[1:],
            "children": [self.tree.domains[child].name for child in domain.children],
            "nodes": list(nodes),
            "switches": list(domain.switches),
            "jobs": self._list_jobs(nodes),
            "faultyPorts": [
                {**end._asdict(), "findingKinds": sorted(kinds[end])}
                for end in sorted(kinds, key=_natural_order)
            ],
            "findings": self._render_findings(devices),
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
        from topology.planes.rails import number_rails

        own = {self.fabric.devices[device].name}
        kinds = {end.port: found for end, found in self._find_kinds(own).items()}
        cables = self._find_cables(device)
        planes, cable_planes = self.split.port_planes, self.split.list_cable_planes()
        rails = number_rails(self.fabric, planes.is_in(self.tree.plane))
        absent = self._find_absent_cables(device)
        rows = []
        for number, links in cables.items():
            port, plane = self.fabric.ports[number], planes.get(number)
            ends = (number, *(peer for peer, _ in links))  # of a switch, the host has the rail
            # A switch may carry several planes, so each of its ports has the plane of its cable.
            found = (cable_planes.get((min(number, end), max(number, end))) for end in ends[1:])
            row = {
                "name": port.name,
                "medium": port.medium.value,
                "state": port.state.value,
                "rateBps": port.rate_bps,
                "plane": plane.plane if plane else next(filter(None, found), None),
                "rail": next((rails[end] for end in ends if end in rails), None),
                "links": [self._render_link(link, peer) for peer, link in links],
                "expected": None if links else absent.get(port.name),
                "findingKinds": sorted(kinds.pop(port.name, ())),
            }
            rows.append(row)
        return [*rows, *self._list_absent_ports(kinds, absent)]

    def _list_absent_ports(
        self, kinds: Mapping[str, set[str]], absent: Mapping[str, dict[str, str] | None]
    ) -> Iterator[dict[str, Any]]:
        """Yield ports that findings name and no source reports: a sweep omits unconnected ones."""
        for port in sorted(kinds, key=natural_key):
            yield {
                "name": port,
                "medium": None,
                "state": _ABSENT,
                "rateBps": None,
                "plane": self.tree.plane if port in absent else None,
                "rail": None,
                "links": [],
                "expected": absent.get(port),
                "findingKinds": sorted(kinds[port]),
            }

    def _find_kinds(self, devices: Collection[str]) -> dict[PortName, set[str]]:
        """Return the kinds of the findings at each port of some devices that has any."""
        kinds: dict[PortName, set[str]] = {}
        for finding in self.findings:
            for end in finding.ends:
                if end.device in devices and end.port:
                    kinds.setdefault(end, set()).add(finding.kind.value)
        return kinds

    def _find_absent_cables(self, device: int) -> dict[str, dict[str, str] | None]:
        """Return the far end of each cable that a port of a device lacks; None if it is unknown."""
        from topology.findings.finding_causes import list_absent_cables

        name = self.fabric.devices[device].name
        found: dict[str, dict[str, str] | None] = {}
        for _, (near, far) in list_absent_cables(self.findings, frozenset(self.tree.all_nodes)):
            for end, other in ((near, far), (far, near)):
                if end is not None and end.device == name:
                    found.setdefault(end.port, other._asdict() if other else None)
        return found

    def _find_cables(self, device: int) -> dict[int, list[tuple[int, Link]]]:
        """Return the other end of each cable, and its link, by port of a device."""
        numbers = (n for n, port in enumerate(self.fabric.ports) if port.device == device)
        found: dict[int, list[tuple[int, Link]]] = {number: [] for number in numbers}
        for link in self.fabric.links:
            for end, peer in ((link.a, link.b), (link.b, link.a)):
                if end in found:
                    found[end].append((peer, link))
        return found

    def _list_jobs(self, nodes: Collection[str]) -> list[dict[str, Any]] | None:
        """Return the gangs with pods on these nodes, each with its nodes, by name."""
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
        ports, devices = self.fabric.ports, self.fabric.devices
        cables = self._find_cables(device).values()
        peers = {ports[peer].device for links in cables for peer, _ in links}
        chosen = [device] if devices[device].kind in _HOSTS else sorted(peers)
        rows = [devices[index] for index in chosen]
        return [row.node or row.name for row in rows if row.kind in _HOSTS]

    def _render_link(self, link: Link, peer: int) -> dict[str, Any]:
        name = self.fabric.port_name(peer)
        return {
            "device": name.device,
            "port": name.port,
            "rateBps": link.rate_bps,
            "oneSided": link.is_one_sided,
            "disputed": link.is_disputed,
        }


def _describe(describer: _FabricDescriber, kind: str, name: str) -> dict[str, Any]:
    """Return the document.

    Raises:
        ConfigError: there is no such thing.
    """
    found: dict[str, Any] | None
    if kind == "domain":
        found = describer.describe_domain(name)
    elif kind == "port":
        found = _find_port(describer, name)
    else:
        device = describer.find_device(name, is_switch=kind == "switch")
        found = None if device is None else describer.describe_device(device)
    if found is None:
        similar = suggest_names(name, describer.list_names(kind))
        others = [row for row in describer.find_meanings(name) if row[0] != kind]
        if others:
            runs = " or ".join(f"toponaut describe {other} {show(own)}" for other, own in others)
            what = " and a ".join(dict.fromkeys(other for other, _ in others))
            raise ConfigError(f"'{show(name)}' is a {what}, not a {kind}; run {runs}{similar}")
        raise ConfigError(f"there is no {kind} '{show(name)}' in these sources{similar}")
    return {"kind": kind, **found} if kind in {"port", "domain"} else found


def _name_gang(gang: str) -> tuple[str, str]:
    """Return the names of a gang: with its namespace, and without."""
    return gang, gang.rpartition("/")[2]


def _find_port(describer: _FabricDescriber, name: str) -> dict[str, Any] | None:
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
        yield Table(_PORT_HEADER, [_render_port(port) for port in sorted(ports, key=_is_good)])
    if document.get("faultyPorts"):
        rows = [
            (show(port["device"]), show(port["port"]), ", ".join(port["findingKinds"]))
            for port in document["faultyPorts"]
        ]
        shown = rows if output == WIDE else rows[:_MAX_PORTS]
        left_out = len(rows) - len(shown)
        more = f"and {left_out} more; -o wide prints each" if left_out else ""
        yield ""
        yield Table(("device", "port", "note"), shown, total=more)
    yield ""
    findings: Sequence[Mapping[str, Any]] = document["findings"]
    rows = [(row["severity"], row["kind"], show(row["message"], 600)) for row in findings]
    yield Table(("severity", "finding", "what to do"), rows, empty="no findings")


def _render_fields(document: Mapping[str, Any], output: str) -> Iterator[str]:
    device = f" of {show(document['device'])}" if "device" in document else ""
    yield f"{document['kind']} {show(document['name'])}{device}"
    if document.get("node") not in {None, document["name"]}:
        yield f"node: {show(document['node'])}"
    if document.get("otherNames"):
        yield f"in outputs: {', '.join(map(show, document['otherNames']))}"
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


def _natural_order(end: PortName) -> tuple[Any, ...]:
    return natural_key(end.device), natural_key(end.port)


def _list_notes(port: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a port; empty of a good one."""
    links = [
        note
        for field, note in (("oneSided", "one-sided"), ("disputed", "disputed"))
        if any(link[field] for link in port["links"])
    ]
    return [*port["findingKinds"], *links]


def _is_good(port: Mapping[str, Any]) -> bool:
    return not _list_notes(port)


def _render_port(port: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one port."""
    links = port["links"]
    peers = ", ".join(show_end(PortName(link["device"], link["port"])) for link in links)
    if port["expected"]:
        peers = f"nothing, expected {show_end(PortName(**port['expected']))}"
    elif not links and FindingKind.LOST_SWITCH.value in port["findingKinds"]:
        peers = f"nothing, expected {A_LOST_SWITCH}"
    rate = port["rateBps"] or next((link["rateBps"] for link in links if link["rateBps"]), None)
    return (
        show(port["name"]),
        port["state"],
        show_rate(rate),
        show(port["plane"] or "-"),
        str(port["rail"] or "-"),
        peers or "-",
        ", ".join(_list_notes(port)),
    )
