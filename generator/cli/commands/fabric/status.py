"""`toponaut status`: the state of a fabric on one screen."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.fabric_outputs import APPROVED, build_outputs_table, list_outputs, read_held_plan
from generator.cli.options import InputOptions
from generator.cli.output import (
    SEVERITY_COLORS,
    Table,
    list_nodes,
    paint,
    print_document,
    show_count,
    show_severity,
)
from topology.findings.finding_causes import Cause, list_causes
from topology.model.errors import show
from topology.model.facts import (
    SEVERITY_RANK,
    DeviceKind,
    FindingKind,
    Severity,
    describe_impact,
    render_finding,
    show_share,
)
from topology.reports.observed_time import parse_observed_at

if TYPE_CHECKING:
    from generator.cli.cluster_input import ClusterInput
    from generator.ingest.sources import Sources
    from topology.reports.packed_reports import PackedReport

_NUM_FIRST: Final = 5
_MAX_QUIET: Final = 80
"""Characters of names: many silent nodes are a number, and `toponaut findings` has all of them."""
_MAX_MESSAGE: Final = 400
"""The advice stands at the end of a message, after the ports that it is about."""
_SILENT: Final = frozenset({FindingKind.SILENT_NODE, FindingKind.STALE_REPORT})


@options.command(
    "status",
    is_watchable=True,
    examples=(
        "toponaut status --reports fabric/reports --nodes fabric/nodes.yaml",
        "toponaut status --kube --check",
    ),
)
def command(
    *,
    sources: InputOptions,
    store: Path | None = options.option(
        "Folder that `toponaut serve` serves: its reports, unless another source is given, the "
        "state of its outputs, and a plan that is held.",
        type=options.FOLDER,
    ),
    tree: Path | None = options.TREE,
    check: bool = options.option(
        "Exit with 5 if there is an error, or if a node has no place in the tree."
    ),
    output: str = options.OUTPUT,
) -> None:
    """Print the state of the fabric on one screen.

    It shows the domains and the nodes without a place, the findings by severity and the gravest of
    them, when the reports and sweeps were collected, nodes that do not report, and for each tier
    the domain with most free capacity, which is the largest gang that fits there. With --kube
    or --store, it also shows the state of each output, and a plan that is held.
    """
    from generator.cli.cluster_input import read_cluster_input
    from generator.cli.observation import parse_sources

    given = parse_sources(sources)
    place = "--kube"
    if store is None:
        cluster = read_cluster_input(given, tree)
    else:
        cluster = _read_store(store, given, tree)
        place = f"--store {shlex.quote(str(store))}"
    document = build_status(cluster, place=place)
    listed = f" --nodes {shlex.quote(str(given.nodes))}" if given.nodes else ""
    print_document(
        document, output, text=lambda: list_parts(document, plan=f"toponaut plan {place}{listed}")
    )
    is_failed = check and (document["findings"]["error"] > 0 or document["unplaced"])
    exit_with_problems(cluster.problems, ExitCode.CHECK_FAILED if is_failed else None)


def _read_store(store: Path, given: Sources, tree: Path | None) -> ClusterInput:
    """Read what a server serves, with its Fabric object.

    Raises:
        click.UsageError: a cluster is given too.
        StoreError: the folder cannot be read.
    """
    from generator.cli.cluster_input import read_cluster_input
    from generator.cli.plans import add_store_reports
    from generator.store.fabric_store import open_folder

    if given.cluster is not None:
        raise click.UsageError("give only one of --store and --kube")
    fabric = open_folder(store).read_fabric()
    sources = given if tree else add_store_reports(given, store, fabric)
    return read_cluster_input(sources, tree)._replace(fabric=fabric)


def build_status(cluster: ClusterInput, *, place: str = "--kube") -> dict[str, Any]:
    """Return the document; `place` is the option that names where the Fabric object is."""
    tree = cluster.tree
    counts = Counter(finding.severity.value for finding in cluster.findings)
    tiers = Counter(domain.tier for domain in tree.domains)
    causes = list_causes(cluster.findings, frozenset(tree.all_nodes))
    return {
        "plane": tree.plane,
        "nodes": len(tree.nodes),
        "unplaced": [{"node": gone.node, "reason": gone.reason} for gone in tree.unplaced],
        "domains": {name: tiers[number] for number, name in enumerate(tree.tiers, 1)},
        "findings": {severity.value: counts[severity.value] for severity in SEVERITY_RANK},
        "causes": len(causes),
        "first": [_render_cause(cause) for cause in causes[:_NUM_FIRST]],
        "quiet": sorted(
            {finding.device for finding in cluster.findings if finding.kind in _SILENT}
        ),
        "reports": _count_reports(cluster),
        "sweeps": [*_list_sweeps(cluster)],
        **_measure_free(cluster),
        "held": read_held_plan(cluster.fabric),
        "outputs": list_outputs(cluster.fabric, place=place),
    }


def _render_cause(cause: Cause) -> dict[str, Any]:
    """Return the finding of a cause with what it costs in all, and what else it explains."""
    message, impact = cause.describe(), cause.impact
    return {
        **render_finding(replace(cause.finding, message=message, impact=impact)),
        "costs": describe_impact(impact),
    }


def _count_reports(cluster: ClusterInput) -> dict[str, Any]:
    """Return the number of reports, of which nodes, and when the first and last were collected."""
    reports = [row for row in cluster.reports if row.sweep is None]
    nodes = {row.name for row in reports if row.device_kind is not DeviceKind.SWITCH}
    silent = {row.device for row in cluster.findings if row.kind is FindingKind.SILENT_NODE}
    texts = [row.status.observed_at for row in reports]
    known = sorted((time, text) for text in texts if (time := parse_observed_at(text)))
    oldest, newest = (known[0][1], known[-1][1]) if known else (None, None)
    return {
        "number": len(reports),
        "nodes": len(nodes),
        "ofNodes": len(nodes.union(silent, cluster.tree.all_nodes)),
        "silentNodes": len(silent),
        "switches": sum(row.device_kind is DeviceKind.SWITCH for row in reports),
        "oldest": oldest,
        "newest": newest,
    }


def _list_sweeps(cluster: ClusterInput) -> Iterator[dict[str, Any]]:
    """Yield the newest sweep of each InfiniBand subnet, and its node."""
    parts: dict[str, list[PackedReport]] = {}
    for row in cluster.reports:
        if row.sweep is not None:
            parts.setdefault(row.sweep.subnet, []).append(row)
    for subnet in sorted({*parts, *cluster.unknown_subnets}):
        newest = max(parts.get(subnet, ()), key=_find_time, default=None)
        yield {
            "subnet": subnet,
            "node": None if newest is None else newest.name.partition(".sweep.")[0],
            "observedAt": None if newest is None else newest.status.observed_at,
            "complete": subnet not in cluster.unknown_subnets,
        }


def _find_time(report: PackedReport) -> datetime:
    return parse_observed_at(report.status.observed_at) or datetime.min.replace(tzinfo=UTC)


def _measure_free(cluster: ClusterInput) -> dict[str, Any]:
    """Return the free capacity, and the freest domain of each tier."""
    from generator.cli.cluster_input import build_free_snapshot
    from generator.jobs.free_by_domain import choose_resource, list_free, measure_domains

    snapshot = build_free_snapshot(cluster)
    resource = choose_resource(snapshot)
    rows = list(measure_domains(snapshot, resource, resource.per_node or 1))
    freest = [
        max((row for row in rows if row.tier == tier), key=attrgetter("free"), default=None)
        for tier in cluster.tree.tiers
    ]
    return {
        "resource": resource.name,
        "free": int(list_free(snapshot, resource.name).sum()),
        "freest": [
            {
                "tier": row.tier,
                "domain": row.domain,
                "freeNodes": row.free_nodes,
                "largestGang": row.free,
            }
            for row in freest
            if row is not None
        ],
    }


def list_parts(
    document: Mapping[str, Any], *, plan: str = "toponaut plan --kube"
) -> Iterator[str | Table]:
    """Yield what text prints; `plan` is the command that prints a held plan."""
    domains = ", ".join(
        show_count(num, show(tier)) for tier, num in document["domains"].items() if num
    )
    nodes = show_count(document["nodes"], "node")
    yield f"plane {show(document['plane'])}: {nodes} in {domains or 'no domain'}"
    unplaced = [row["node"] for row in document["unplaced"]]
    if unplaced:
        text = f"without a place: {list_nodes(unplaced, 'text')}"
        yield paint(text, SEVERITY_COLORS[Severity.WARNING.value])
    yield from _render_freshness(document)
    if document["quiet"]:
        yield f"no fresh report: {list_nodes(document['quiet'], 'text', max_chars=_MAX_QUIET)}"
    if document["held"]:
        held = show(str(document["held"].get("hash")))
        text = f"held: plan {held} since {show(str(document['held'].get('since')))}"
        way = f"it {APPROVED}" if document["held"]["approved"] else f"{show(plan, 1024)} shows it"
        yield paint(f"{text}; {way}", SEVERITY_COLORS["warning"])
    counts = document["findings"]
    num_findings, num_causes = sum(counts.values()), document["causes"]
    text = ", ".join(
        paint(show_severity(num, name), SEVERITY_COLORS[name]) if num else show_severity(0, name)
        for name, num in counts.items()
    )
    of_causes = f", of {show_count(num_causes, 'cause')}" if num_causes < num_findings else ""
    yield f"findings: {text}{of_causes}"
    for row in document["first"]:
        severity = paint(row["severity"], SEVERITY_COLORS[row["severity"]])
        costs = f" ({row['costs']})" if row["costs"] else ""
        yield f"  {severity} {row['kind']}{costs}: {show(row['message'], _MAX_MESSAGE)}"
    num_more = num_causes - len(document["first"])
    if num_more > 0:
        yield f"  {show_count(num_more, 'more cause')}: toponaut findings"
    yield f"free: {document['free']} {show(document['resource'])}"
    if document["freest"]:
        yield _build_free_table(document["freest"])
    if document["outputs"]:
        yield build_outputs_table(document["outputs"])


def _build_free_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    return Table(
        ("tier", "freest domain", "free nodes", "largest gang"),
        [
            (
                *(show(row["tier"]), show(row["domain"])),
                *(str(row["freeNodes"]), str(row["largestGang"])),
            )
            for row in rows
        ],
    )


def _render_freshness(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield when reports and sweeps were collected, if there are any."""
    reports = document["reports"]
    if reports["number"]:
        of_nodes = f"{reports['nodes']} of {show_count(reports['ofNodes'], 'node')}"
        switches = show_count(reports["switches"], "switch") if reports["switches"] else ""
        text = f"reports: {' and '.join(filter(None, (of_nodes, switches)))}"
        if reports["silentNodes"]:
            share = show_share(reports["silentNodes"] / reports["ofNodes"])
            text += f"; {reports['silentNodes']} silent ({share})"
        is_known = reports["oldest"] and reports["newest"]
        times = f"of {show(reports['oldest'])} to {show(reports['newest'])}" if is_known else ""
        yield f"{text}; {times or 'of unknown age'}"
    for row in document["sweeps"]:
        at = f" at {show(row['observedAt'])}" if row["observedAt"] else ""
        node = f" by {show(row['node'])}{at}" if row["node"] else ""
        state = "" if row["complete"] else paint(": no complete one", SEVERITY_COLORS["warning"])
        yield f"sweep of subnet {show(row['subnet'])}{node}{state}"
