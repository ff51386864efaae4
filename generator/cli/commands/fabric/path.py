"""`toponaut path`: the shortest ways between two nodes, rail by rail, and the faults on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import InputOptions
from generator.cli.output import WIDE, Table, list_nodes, print_document, show_count
from runtime.options import suggest_names
from topology.model.cabling_plan import show_end
from topology.model.errors import ConfigError, list_some, show
from topology.model.facts import DeviceKind, Finding, FindingKind, PortName, PortState

if TYPE_CHECKING:
    from topology.model.fabric import Fabric
    from topology.model.tree import TopologyTree
    from topology.planes.cables import Edge, EdgeRows
    from topology.planes.plane import Plane
    from topology.planes.shortest_paths import ShortestPaths

_HEADER: Final = ("rail", "from port", "switches", "to port", "cables", "findings")
_MAX_LISTED: Final = 2
"""Switches of one stage that text names; of more it prints the number."""
_MAX_MESSAGES: Final = 10
"""Findings that text explains; `-o wide` explains all."""
_MAX_MISSING: Final = 2
"""Missing cables between switches that text explains one by one."""
_MAX_NAMED: Final = 8
"""Cables that text names in one line."""
_NO_PORT: Final = -1
"""The port of a missing cable."""


@options.command(
    "path",
    examples=(
        "toponaut path node-0001 node-0050 --reports fabric/reports",
        "toponaut path node-0001 node-0050 --kube -o json",
    ),
)
def command(
    *,
    a: str = options.argument(metavar="A"),
    b: str = options.argument(metavar="B"),
    sources: InputOptions,
    output: str = options.WIDE_OUTPUT,
) -> None:
    """Print the shortest ways from node A to node B, rail by rail, and the faults on them.

    All shortest ways count: `8 switches` is a stage at which traffic may take any of eight. There
    is no way on a rail where the port of a node has no cable. If a node has no port of a rail, the
    way leads to its nearest port. `5 > 1` is a way that changes its rail.
    """
    from generator.cli.observation import parse_sources, read_cables
    from topology.planes.rails import number_rails

    read, split = read_cables(parse_sources(sources))
    fabric, tree = split.fabric, read.observation.tree
    findings = read.observation.findings
    hosts = _find_host(fabric, a), _find_host(fabric, b)
    if hosts[0] == hosts[1]:
        raise ConfigError(f"'{show(a)}' and '{show(b)}' are one node: give two")
    rails = number_rails(fabric, split.port_planes.is_in(tree.plane))
    search = _Search(fabric, split.plane(tree.plane), rails, findings, hosts)
    document = {
        "a": a,
        "b": b,
        "meetIn": _find_common_domain(tree, a, b),
        "ways": [*search.list_ways()],
    }
    own = {fabric.devices[host].name for host in hosts}
    between = [row for row in findings if own.isdisjoint(end.device for end in row.ends)]
    unlinked = search.list_unlinked()
    print_document(
        document,
        output,
        text=lambda: chain(_list_parts(document, findings, between, output), unlinked),
    )
    exit_with_problems(read.problems)


def _find_host(fabric: Fabric, name: str) -> int:
    """Return the number of a host.

    Raises:
        ConfigError: there is no such host, or the name is that of a switch.
    """
    hosts = {
        text: index
        for index, row in enumerate(fabric.devices)
        if row.kind is DeviceKind.HOST
        for text in (row.name, row.node or row.name)
    }
    if name not in hosts and any(row.name == name for row in fabric.devices):
        raise ConfigError(f"'{show(name)}' is a switch: give two nodes")
    if name not in hosts:
        similar = suggest_names(name, hosts)
        raise ConfigError(f"there is no node '{show(name)}' in these sources{similar}")
    return hosts[name]


def _find_common_domain(tree: TopologyTree, a: str, b: str) -> dict[str, str] | None:
    """Return the lowest domain that has both nodes; None without one."""
    both = [row for row in tree.domains if {a, b} <= set(tree.nodes_of(row))]
    if not both:
        return None
    domain = min(both, key=lambda row: row.tier)
    return {"name": domain.name, "tier": tree.tiers[domain.tier - 1]}


class _Way(NamedTuple):
    """The ways between one port of a node and one of another."""

    first: Edge
    last: Edge
    paths: ShortestPaths


@dataclass(frozen=True)
class _Search:
    """The search for the ways between two hosts in a plane."""

    fabric: Fabric
    plane: Plane
    rails: Mapping[int, int]
    findings: Sequence[Finding]
    hosts: tuple[int, int]

    def list_ways(self) -> Iterator[dict[str, Any]]:
        """Yield the ways of each rail that either host has, then those of ports without a rail."""
        names = {
            self.rails[port]: end.port for port, end in self._ends.items() if port in self.rails
        }
        for rail, name in sorted(names.items()):
            yield from self._list_ways_of_rail(rail, name)
        starts, stops = self._cables
        for first in starts:
            if first.a_port not in self.rails and (way := self._find_nearest([first], stops)):
                yield self._render_way(None, way)
        for port, end in self._ends.items():
            if port not in self.rails and port not in self._cabled and end in self._faulty:
                is_first = self.fabric.ports[port].device == self.hosts[0]
                yield self._render_dead_end(None, (end, None) if is_first else (None, end))

    def _list_ways_of_rail(self, rail: int, name: str) -> Iterator[dict[str, Any]]:
        """Yield the ways of one rail.

        A rail on which neither host has a cable is not in use unless a finding names its port.
        """
        own = [
            [edge for edge in row if self.rails.get(edge.a_port) == rail] for row in self._cables
        ]
        a, b = (PortName(self.fabric.devices[host].name, name) for host in self.hosts)
        is_dead = any(
            not cables and (end in self._ends.values() or end in self._faulty)
            for cables, end in zip(own, (a, b), strict=True)
        )
        starts, stops = (near or row for near, row in zip(own, self._cables, strict=True))
        pairs = [([edge], stops) for edge in starts] if own[0] else [(starts, [e]) for e in stops]
        ways = [] if is_dead else [way for pair in pairs if (way := self._find_nearest(*pair))]
        for way in ways:
            yield self._render_way(rail, way)
        if not ways and (any(own) or not self._faulty.isdisjoint((a, b))):
            yield self._render_dead_end(rail, (a, b))

    @cached_property
    def _ends(self) -> dict[int, PortName]:
        """The names of the ports that the hosts have in the plane."""
        import numpy as np

        ports = self.plane.ports.numbers
        is_own = np.isin(self.fabric.columns.port_devices[ports], self.hosts)
        return {port: self.fabric.port_name(port) for port in ports[is_own].tolist()}

    @cached_property
    def _cables(self) -> tuple[list[Edge], list[Edge]]:
        """The cables of the first host, and those of the second host."""
        edges = self.plane.host_edges
        a, b = ([*edges.where(edges.columns.a == host)] for host in self.hosts)
        return a, b

    def list_unlinked(self) -> Iterator[str]:
        """Yield a sentence for each host that has no cable in the plane at all."""
        for host, cables in zip(self.hosts, self._cables, strict=True):
            if not cables:
                name = self.fabric.devices[host].name
                num = sum(end.device == name for end in self._ends.values())
                known = f" ({show_count(num, 'port')} known)" if num else ""
                yield f"no port of {show(name)} is linked{known}: check its power and its cables"

    @cached_property
    def _cabled(self) -> set[int]:
        """The ports of the hosts that have a cable."""
        return {edge.a_port for edge in chain(*self._cables)}

    @cached_property
    def _faulty(self) -> set[PortName]:
        """All ports that at least one finding names."""
        return {end for finding in self.findings for end in finding.ends}

    def _find_nearest(self, starts: Sequence[Edge], stops: Sequence[Edge]) -> _Way | None:
        """Return the shortest of the ways from some cables to others; of equal ones the first."""
        from topology.planes.shortest_paths import find_shortest_paths

        edges, num = self.plane.switch_edges, len(self.fabric.devices)
        ways = [
            _Way(first, last, paths)
            for first in starts
            for last in stops
            if (paths := find_shortest_paths(edges, num, first.b, last.b))
        ]
        return min(ways, key=lambda way: len(way.paths.stages), default=None)

    def _render_way(self, rail: int | None, way: _Way) -> dict[str, Any]:
        cables = [way.first, *way.paths.edges, way.last]
        name_of = self.fabric.port_name
        ends = {name_of(port) for edge in cables for port in (edge.a_port, edge.b_port)}
        return {
            "rail": rail,
            "rails": self._list_rails(way),
            "fromPort": name_of(way.first.a_port).port,
            "toPort": name_of(way.last.a_port).port,
            "deadEnds": [],
            "switches": [
                [self.fabric.devices[switch].name for switch in stage] for stage in way.paths.stages
            ],
            "cables": [
                {"a": name_of(edge.a_port)._asdict(), "b": name_of(edge.b_port)._asdict()}
                for edge in cables
            ],
            "findings": self._render_findings(ends, self._find_gaps(way)),
        }

    def _render_dead_end(
        self, rail: int | None, ends: tuple[PortName | None, PortName | None]
    ) -> dict[str, Any]:
        states = {end: self.fabric.ports[port].state for port, end in self._ends.items()}
        cabled = {self._ends[port] for port in self._cabled if port in self._ends}
        known = {side: end for side, end in zip("ab", ends, strict=True) if end}
        return {
            "rail": rail,
            "rails": [] if rail is None else [rail],
            "fromPort": ends[0] and ends[0].port,
            "toPort": ends[1] and ends[1].port,
            "deadEnds": [
                {
                    "end": side,
                    **end._asdict(),
                    "state": states.get(end, PortState.UNKNOWN).value,
                }
                for side, end in known.items()
                if end not in cabled
            ],
            "switches": [],
            "cables": [],
            "findings": self._render_findings(set(known.values()), []),
        }

    def _render_findings(
        self, ends: set[PortName], gaps: Sequence[Finding]
    ) -> list[dict[str, Any]]:
        """Return the findings that name one of these ports, and those of missing cables."""
        return [
            {"kind": finding.kind.value, "message": finding.message}
            for finding in self.findings
            if not ends.isdisjoint(finding.ends) or finding in gaps
        ]

    def _list_rails(self, way: _Way) -> list[int]:
        """Return the rails that a way passes: of its ports, and of the leaves between them."""
        stages = way.paths.stages
        leaves = [self._leaf_rails.get(stage[0]) for stage in (stages[0], stages[-1])]
        passed = [self.rails.get(way.first.a_port), *leaves, self.rails.get(way.last.a_port)]
        return [rail for rail, _ in groupby(rail for rail in passed if rail is not None)]

    @cached_property
    def _leaf_rails(self) -> dict[int, int]:
        """The rail of each leaf at which more than half of the cables of hosts have one rail."""
        columns = self.plane.host_edges.columns
        leaves, ports = columns.b.tolist(), columns.a_port.tolist()
        totals = Counter(leaves)
        pairs = Counter(
            (leaf, self.rails[port])
            for leaf, port in zip(leaves, ports, strict=True)
            if port in self.rails
        )
        return {leaf: rail for (leaf, rail), num in pairs.items() if 2 * num > totals[leaf]}

    def _find_gaps(self, way: _Way) -> list[Finding]:
        """Return the findings of missing cables and lost switches that shortest ways would take.

        Where the far end of an up-link is unknown, its switch must be below the top of the way.
        """
        from topology.planes.shortest_paths import find_shortest_paths

        start, stop = way.first.b, way.last.b
        num = len(self.fabric.devices) + len(self._lost)
        whole = find_shortest_paths(self._edges_of_plan, num, start, stop)
        stages = (whole or way.paths).stages
        stage_of = {switch: index for index, stage in enumerate(stages) for switch in stage}
        found = []
        for finding, switches in self._gaps:
            match [stage_of.get(switch) for switch in switches]:
                case [int(low), int(high)]:
                    is_passed = abs(low - high) == 1
                case [int(low)]:
                    is_passed = 2 * low != len(stages) - 1
                case _:
                    is_passed = False
            if is_passed:
                found.append(finding)
        return [*found, *(self._lost[number] for number in self._lost.keys() & stage_of)]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of the switches of the plane."""
        return {self.fabric.devices[switch].name: switch for switch in self.plane.switches}

    @cached_property
    def _lost(self) -> dict[int, Finding]:
        """The lost switches, with numbers behind those of the devices."""
        rows = (row for row in self.findings if row.kind is FindingKind.LOST_SWITCH)
        return dict(enumerate(rows, len(self.fabric.devices)))

    @cached_property
    def _gaps(self) -> list[tuple[Finding, list[int]]]:
        """The findings of missing cables between switches, and the switches that each names."""
        numbers = self._numbers
        rows = (
            (finding, {end.device for end in finding.ends})
            for finding in self.findings
            if finding.kind is FindingKind.MISSING_LINK
        )
        return [
            (finding, sorted(numbers[name] for name in names))
            for finding, names in rows
            if names <= numbers.keys()
        ]

    @cached_property
    def _edges_of_plan(self) -> EdgeRows:
        """The cables between switches, and each missing cable between two of them or lost ones."""
        from topology.planes.cables import Edge, EdgeRows

        pairs = [(low, high) for _, (low, *others) in self._gaps for high in others]
        for number, finding in self._lost.items():
            names = {end.device for end in finding.ports} & self._numbers.keys()
            pairs += [(self._numbers[name], number) for name in sorted(names)]
        missing = EdgeRows.of(Edge(low, high, _NO_PORT, _NO_PORT) for low, high in pairs)
        return self.plane.switch_edges.joined(missing)


def _list_parts(
    document: Mapping[str, Any],
    findings: Sequence[Finding],
    between: Sequence[Finding],
    output: str,
) -> Iterator[str | Table]:
    """Yield what text prints; the findings between the switches are about neither node."""
    a, b, meeting = show(document["a"]), show(document["b"]), document["meetIn"]
    if meeting is None:
        yield f"no domain has both {a} and {b}"
    else:
        yield f"{a} and {b} meet in {show(meeting['tier'])} {show(meeting['name'])}"
    rows = [_build_cells(way, output) for way in document["ways"]]
    yield Table(_HEADER, rows, empty=f"no cables lead from {a} to {b}")
    ways = document["ways"]
    named = {row["message"] for way in ways for row in way["findings"]}
    of_dead_ends = {row["message"] for way in ways if way["deadEnds"] for row in way["findings"]}
    missing = [
        row for row in between if row.kind is FindingKind.MISSING_LINK and row.message in named
    ]
    is_folded = output != WIDE and len(missing) > _MAX_MISSING
    if is_folded:
        named -= {row.message for row in missing}
    messages = [*dict.fromkeys(row.message for row in findings if row.message in named)]
    messages.sort(key=lambda message: message not in of_dead_ends)
    num = len(messages) if output == WIDE else _MAX_MESSAGES
    yield from (show(message, 600) for message in messages[:num])
    if len(messages) > num:
        yield f"{show_count(len(messages) - num, 'more finding')}: see -o wide"
    if is_folded:
        yield _fold_missing(missing)


def _fold_missing(findings: Sequence[Finding]) -> str:
    """Return one line for all missing cables between switches."""
    from topology.findings.finding_causes import Cause

    cables = list(chain.from_iterable(Cause(row).cables for row in findings))
    names = (f"{show_end(near)} <> {show_end(far) if far else '?'}" for near, far in cables)
    return (
        f"{show_count(len(findings), 'finding')} of missing cables between switches: "
        f"{list_some(names, _MAX_NAMED)} (-o wide explains each)"
    )


def _build_cells(way: Mapping[str, Any], output: str) -> tuple[str, ...]:
    kinds = Counter(row["kind"] for row in way["findings"])
    stages = (_show_stage(stage, output) for stage in way["switches"])
    return (
        " > ".join(map(str, way["rails"])) or "-",
        _show_port(way, "a", way["fromPort"]),
        " > ".join(stages) or "no way on this rail",
        _show_port(way, "b", way["toPort"]),
        str(len(way["cables"])),
        ", ".join(f"{num} {kind}" if num > 1 else kind for kind, num in sorted(kinds.items()))
        or "-",
    )


def _show_port(way: Mapping[str, Any], side: str, port: str | None) -> str:
    """Return a port, and what is wrong with it if it has no cable."""
    if port is None:
        return "-"
    state = next((row["state"] for row in way["deadEnds"] if row["end"] == side), None)
    words = {None: "", PortState.DOWN.value: " down"}.get(state, " without a cable")
    return f"{show(port)}{words}"


def _show_stage(switches: Sequence[str], output: str) -> str:
    if output == WIDE or len(switches) <= _MAX_LISTED:
        return list_nodes(switches, output)
    return show_count(len(switches), "switch")
