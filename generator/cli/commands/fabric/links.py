"""`toponaut links`: every cable with both ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.option_types import parse_pattern
from generator.cli.options import InputOptions
from generator.cli.output import CSV, Table, print_document, show_count, show_rate
from runtime.options import Choice, suggest_names
from topology.model.errors import ConfigError, show
from topology.model.facts import A_LOST_SWITCH, FindingKind, PortName

if TYPE_CHECKING:
    from generator.observe.observation import Observation
    from topology.model.fabric import Link
    from topology.planes.plane_split import PlaneSplit

_UP: Final = "up"
_HEADER: Final = ("from", "port", "to", "port", "rate", "state", "plane", "rail", "findings")
_CSV_HEADER: Final = (
    *("device_a", "port_a", "device_b", "port_b", "rate_gbps", "state", "plane", "rail"),
    "findings",
)
"""The first four are those of a cabling plan, so `toponaut diff --cabling` reads the file."""
_MISSING: Final = "missing"
_STATES: Final = (_UP, "one-sided", "disputed", _MISSING)


@options.command(
    "links",
    is_watchable=True,
    examples=(
        "toponaut links --reports fabric/reports --faulty",
        "toponaut links --reports fabric/reports --device 'leaf-*' -o csv",
    ),
)
def command(
    *,
    sources: InputOptions,
    device: tuple[str, ...] = options.option(
        "Only cables of this device; `*` stands for any text. Repeatable.",
        metavar="PATTERN",
        type=parse_pattern,
    ),
    state: str | None = options.option(
        "Only cables in this state: one-sided is reported by one end, disputed contradicts "
        "another cable, missing is absent although the peers of its ends have one.",
        type=Choice(_STATES),
    ),
    faulty: bool = options.option(
        "Only cables with a finding at either end, and those that are missing."
    ),
    output: str = options.output_of(CSV),
) -> None:
    """Print every cable with both ends, its rate, state, network and rail, and its findings.

    A cable from a host begins at the host, and one between switches at the lower one by name. The
    network of a cable is that of the ports of its host. With --plane, only cables of one network
    are printed. Missing cables are printed on request alone: with --faulty or --state missing.
    """
    from generator.cli.observation import parse_sources, read_cables
    from topology.findings.finding_causes import name_lost_switch

    given = parse_sources(sources)
    read, split = read_cables(given)
    kinds: dict[tuple[str, str], set[str]] = defaultdict(set)
    for finding in read.observation.findings:
        for end in finding.ends:
            kinds[end].add(finding.kind.value)
    lost = set(map(name_lost_switch, read.observation.findings))
    known = {row.name for row in split.fabric.devices} | {name for name, _ in kinds} | lost
    _refuse_unknown(device, known)
    links = [*_list_links(split, kinds)]
    if faulty or state == _MISSING:
        links += _list_missing(read.observation, links)
    rows = [
        row
        for row in links
        if (given.plane is None or row["plane"] == given.plane)
        and (state is None or row["state"] == state)
        and (not faulty or row["findings"])
        and (not device or any(_has_device(row, pattern) for pattern in device))
    ]
    total = show_count(len(rows), "cable")
    print_document(
        {"links": rows},
        output,
        text=lambda: Table(
            _HEADER,
            [
                tuple(
                    show(cell or "-")
                    for cell in _build_cells(_name_far_end(row), show_rate(row["rateBps"]))
                )
                for row in rows
            ],
            total=total,
            empty="no cables",
        ),
        table=lambda: Table(
            _CSV_HEADER, [_build_cells(row, _count_gbps(row["rateBps"])) for row in rows]
        ),
    )
    exit_with_problems(read.problems)


def _refuse_unknown(patterns: Iterable[str], known: Collection[str]) -> None:
    """Refuse a pattern that no device has: it would seem to have no cables.

    Raises:
        ConfigError: a pattern matches no device of the fabric and none that a finding names.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            similar = suggest_names(pattern, known)
            raise ConfigError(f"there is no device '{show(pattern)}' in these sources{similar}")


def _has_device(row: Mapping[str, Any], pattern: str) -> bool:
    return any(fnmatchcase(row[end]["device"], pattern) for end in ("a", "b"))


def _list_links(
    split: PlaneSplit, kinds: Mapping[tuple[str, str], set[str]]
) -> Iterator[dict[str, Any]]:
    """Yield the cables in the order of the fabric."""
    from topology.planes.rails import number_rails

    fabric = split.fabric
    planes = split.list_cable_planes()
    rails: dict[int, int] = {}
    for name in split.names:
        rails |= number_rails(fabric, split.port_planes.is_in(name))
    for link in fabric.links:
        ends = [link.a, link.b]
        if split.port_planes.get(link.b) and not split.port_planes.get(link.a):
            ends.reverse()
        names = [fabric.port_name(end) for end in ends]
        yield {
            "a": {"device": names[0].device, "port": names[0].port},
            "b": {"device": names[1].device, "port": names[1].port},
            "rateBps": link.rate_bps,
            "state": _find_state(link),
            "plane": planes.get((link.a, link.b)),
            "rail": next((rails[end] for end in ends if end in rails), None),
            "findings": sorted(kinds.get(names[0], set()) | kinds.get(names[1], set())),
        }


def _list_missing(
    observation: Observation, links: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the cables that findings name and that do not exist."""
    from topology.findings.finding_causes import list_absent_cables

    linked = {PortName(**row[end]) for row in links for end in ("a", "b")}
    tree = observation.tree
    found = list_absent_cables(observation.findings, frozenset(tree.all_nodes), linked)
    for finding, (near, far) in found:
        yield {
            "a": near._asdict(),
            "b": (far or PortName("", ""))._asdict(),
            "rateBps": None,
            "state": _MISSING,
            "plane": tree.plane,
            "rail": None,
            "findings": [finding.kind.value],
        }


def _name_far_end(row: dict[str, Any]) -> dict[str, Any]:
    """Return a cable whose far end says that it is a lost switch, if that has no name."""
    is_lost = row["state"] == _MISSING and row["findings"] == [FindingKind.LOST_SWITCH.value]
    return (
        row
        if row["b"]["device"] or not is_lost
        else row | {"b": {**row["b"], "device": A_LOST_SWITCH}}
    )


def _find_state(link: Link) -> str:
    if link.is_disputed:
        return "disputed"
    return "one-sided" if link.is_one_sided else _UP


def _build_cells(row: Mapping[str, Any], rate: str) -> tuple[str, ...]:
    """Return the cells of a cable; empty where nothing is known."""
    return (
        *(row["a"]["device"], row["a"]["port"], row["b"]["device"], row["b"]["port"]),
        *(rate, row["state"], row["plane"] or "", str(row["rail"] or "")),
        ", ".join(row["findings"]),
    )


def _count_gbps(rate_bps: int | None) -> str:
    return f"{rate_bps / 1_000_000_000:g}" if rate_bps else ""
