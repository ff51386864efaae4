"""`toponaut describe`: all that is known about one node, switch, port or domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from generator.cli.commands.fabric.descriptions import FabricDescriber
from generator.cli.commands.fabric.running_jobs import read_gangs
from generator.cli.exit_codes import exit_with_problems
from generator.cli.observation import read_observation
from generator.cli.output import WIDE, list_nodes, print_document, render_table
from generator.cli.source_values import parse_sources
from generator.observe.observation import ObservationCache
from topology.join.fabric_join import build_fabric
from topology.model.errors import ConfigError, show
from topology.planes.plane import split_planes

_PORT_HEADER: Final = ("PORT", "STATE", "RATE", "PLANE", "RAIL", "CONNECTED TO", "NOTE")
_GBPS: Final = 1_000_000_000
_MAX_IDS: Final = 8


def run(ctx: click.Context, /, output: str, *, kind: str, name: str, **options: Any) -> None:  # noqa: ANN401 - click's
    """Run `toponaut describe` with the values of its options."""
    pods, running = options.pop("pods"), options.pop("running")
    if pods and running:
        raise click.UsageError("give only one of --pods and --running")
    sources = parse_sources(options)
    if sources.is_tree and kind != "domain":
        raise click.UsageError("HyperNodes and labels have no devices: give another source")
    memory = ObservationCache(has_updates=False)
    read = read_observation(sources, memory=memory)
    describer = FabricDescriber(
        memory.split or split_planes(build_fabric(())),  # a tree has no devices
        read.observation.tree,
        read.observation.findings,
        read_gangs(pods, running, sources.cluster),
    )
    document = _describe(describer, kind, name)
    print_document(document, output, text=lambda: "\n".join(_render_text(document, output)))
    exit_with_problems(ctx, read.problems)


def _describe(describer: FabricDescriber, kind: str, name: str) -> dict[str, Any]:
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


def _describe_port(describer: FabricDescriber, name: str) -> dict[str, Any] | None:
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


def _render_text(document: Mapping[str, Any], output: str) -> Iterator[str]:
    """Yield the lines: fields, then domains, ports and findings."""
    yield from _render_fields(document, output)
    for title in ("domains", "parents"):
        for row in document.get(title, ()):
            yield f"{show(row['tier'])}: {show(row['name'])}{_show_margin(row['margin'])}"
    ports = document.get("ports", [document] if "state" in document else [])
    if ports:
        yield ""
        yield render_table(_PORT_HEADER, [_render_port(port) for port in ports])
    yield ""
    findings: Sequence[Mapping[str, Any]] = document["findings"]
    rows = [(row["severity"], row["kind"], show(row["message"], 600)) for row in findings]
    yield render_table(("SEVERITY", "FINDING", "WHAT TO DO"), rows) if rows else "no findings"


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
