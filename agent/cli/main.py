"""The commands of `toponaut-agent`: once, run, collectors. stdout is data, stderr is the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Final, Unpack

import click

from agent.cli.kube_options import AllOptions, ApiServerAccess, kube_options
from agent.cli.options import (
    Command,
    NodeOptions,
    env_var_of,
    node_options,
    open_fabric,
    open_node_context,
    parse_with,
)
from agent.cli.output import align_columns, render_text
from agent.collection import CollectorRun, NodeContext, RunOutcome, check_availability, collect
from agent.loop import ReportLoop
from agent.node_report import build_reports
from agent.publish.destination import Destination
from agent.publish.directory import REPORTS, ReportFolder, document_of, render_document
from agent.settings import (
    FrameMode,
    max_sweep_time_s,
    parse_delay,
    parse_duration,
    parse_listen,
)
from agent.sweep_schedule import ElectionSource, SweepSchedule, find_sweep_run
from agent.telemetry.endpoints import serve_endpoints
from runtime.stop import TERMINATED, call_on_sigterm, stop_signals
from runtime.values import Address
from topology.model.errors import ConfigError, StoreError

log = logging.getLogger(__name__)


class AgentExitCode(IntEnum):
    """What the exit codes mean; click itself ends with 2 where the usage is wrong."""

    OK = 0
    USAGE = 2
    INCOMPLETE = 3
    """Answered, but a collector failed or part of an input was unreadable."""
    NOTHING = 4
    """No collector found anything and at least one failed."""


_output: Final[Callable[[Command], Command]] = click.option(
    "--output",
    "-o",
    envvar=env_var_of("output"),
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="Form of what is printed.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="toponaut", prog_name="toponaut-agent")
def cli() -> None:
    """Report which ports this node has and what they are cabled to.

    Each option can also be given as a variable: TOPONAUT_AGENT_ and its name in capitals.
    """


@cli.command()
@_output
@node_options
@kube_options
def once(output: str, **options: Unpack[AllOptions]) -> None:
    """Collect once and print the reports.

    Answers at once: it listens to LLDP frames itself only with --listen-for or --frames always.

    Exit codes: 0 all collectors answered, be it that there is nothing; 3 some failed, or part of
    what they read was unreadable; 4 some failed and none found anything; 2 wrong usage.
    """
    if _is_default("listen_for") and options["frames"] == FrameMode.AUTO:
        options["listen_for"] = 0.0
    node = open_node_context(options)
    node = replace(node, wait=node.stop.wait)
    elections: ElectionSource | None = open_fabric(options)
    if options["kube"]:
        with _as_usage_errors():
            elections = ApiServerAccess(options, node.clock).open_fabric_reader()
    turns = SweepSchedule(node.settings, node.clock, elections)
    node = replace(node, settings=turns.current_settings())
    try:
        with call_on_sigterm(node.stop.set):
            attempts = collect(node, {})
    finally:
        node.close()
    if node.stop.is_set:
        sys.exit(TERMINATED)
    sweep = find_sweep_run(attempts)
    standing = turns.record_sweep(node.settings, sweep) if sweep else None
    reports = build_reports(node.settings, attempts, now=node.clock.now(), sweeping=standing)
    if output == "text":
        _print(render_text(reports))
    else:
        items = [document_of(report) for report in reports]
        _print_document({"apiVersion": "v1", "kind": "List", "items": items}, output)
    sys.exit(_derive_exit_code(attempts))


@cli.command()
@click.option(
    "--publish",
    envvar=env_var_of("publish"),
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that gets this node's reports, one file each.  [default: neighborreports/ in "
    "--store]",
)
@click.option(
    "--period",
    envvar=env_var_of("period"),
    default="1m",
    show_default=True,
    callback=parse_with(parse_duration),
    help="Time from one collection to the next.",
)
@click.option(
    "--jitter",
    envvar=env_var_of("jitter"),
    default="5s",
    show_default=True,
    callback=parse_with(parse_delay),
    help="Up to this much is added to each period, so that nodes do not act as one.",
)
@click.option(
    "--health-listen",
    envvar=env_var_of("health-listen"),
    metavar="HOST:PORT",
    callback=parse_with(parse_listen),
    help="Where /livez, /readyz and /startupz are asked for; :8081 is all addresses. "
    "[default: nowhere]",
)
@click.option(
    "--metrics-listen",
    envvar=env_var_of("metrics-listen"),
    metavar="HOST:PORT",
    callback=parse_with(parse_listen),
    help="Where Prometheus finds /metrics.  [default: nowhere]",
)
@node_options
@kube_options
def run(
    publish: Path | None,
    period: float,
    jitter: float,
    health_listen: Address | None,
    metrics_listen: Address | None,
    **options: Unpack[AllOptions],
) -> None:
    """Collect again and again, and publish what changed, until SIGTERM or SIGINT."""
    place = publish or (options["store"] / REPORTS if options["store"] else None)
    if (place is None) is not options["kube"]:
        raise click.UsageError("name where reports go: --kube, or --store or --publish")
    if options["api_server"] and not options["kube"]:
        raise click.UsageError("--api-server goes with --kube: reports go into a folder otherwise")
    node = open_node_context(options)
    with ExitStack() as stack:
        stack.callback(node.close)
        with _as_usage_errors():
            told = stack.enter_context(
                serve_endpoints(
                    health_listen,
                    metrics_listen,
                    period_s=period + jitter,
                    sweeping_s=max_sweep_time_s(node.settings),
                    clock=node.clock,
                )
            )
            if place is None:
                cluster = ApiServerAccess(
                    options, node.clock, period_s=period, on_answer=told.on_answer
                )
                reports: Destination = cluster.open_report_writer(node.settings.node_name)
                elections: ElectionSource | None = cluster.open_fabric_reader()
            else:
                reports, elections = _open_folder(place, node), open_fabric(options)
        rounds = ReportLoop(node, reports, elections, told.round_observers)
        _run_rounds(rounds, node, period_s=period, jitter_s=jitter)


@cli.command()
@_output
@node_options
def collectors(output: str, **options: Unpack[NodeOptions]) -> None:
    """List the collectors, which of them can work on this node, and why the others cannot."""
    found = check_availability(open_node_context(options))
    if output == "text":
        rows = [(one.collector, "no" if one.reason else "yes", one.reason) for one in found]
        _print("\n".join(align_columns([("COLLECTOR", "AVAILABLE", "REASON"), *rows])))
        return
    _print_document(
        [
            {"name": one.collector, "available": not one.reason, "reason": one.reason}
            for one in found
        ],
        output,
    )


def main() -> None:
    """Run the command line."""
    cli(prog_name="toponaut-agent")


def _open_folder(place: Path, node: NodeContext) -> ReportFolder:
    folder = ReportFolder(place, node.settings.node_name)
    folder.prepare()
    return folder


def _run_rounds(rounds: ReportLoop, node: NodeContext, *, period_s: float, jitter_s: float) -> None:
    """Run rounds until a stop signal; a round that runs then is made short, and awaited."""
    from runtime.periodic import PeriodicJob  # noqa: PLC0415 - other commands do not load it

    with stop_signals() as wait_for_stop:
        log.info("agent started", extra={"period_s": period_s})
        job = PeriodicJob(rounds.tick, period_s=period_s, jitter_s=jitter_s, now=node.clock.now)
        log.info("agent stopping", extra={"signal": wait_for_stop()})
        node.stop.set()
        job.stop()


@contextmanager
def _as_usage_errors() -> Iterator[None]:
    """Tell of what cannot be opened as of a wrong option."""
    try:
        yield
    except (ConfigError, StoreError) as error:
        raise click.UsageError(str(error)) from error


def _is_default(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT


def _print_document(document: object, output: str) -> None:
    if output == "json":
        _print(render_document(document).rstrip())
        return
    import yaml  # noqa: PLC0415 - json and text do without

    _print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip())


def _print(text: str) -> None:
    # As bytes: the locale may have no letters for what neighbors are called.
    click.echo(text.encode())


def _derive_exit_code(attempts: Sequence[CollectorRun]) -> AgentExitCode:
    outcomes = {attempt.outcome for attempt in attempts}
    if RunOutcome.FAILED in outcomes and RunOutcome.OK not in outcomes:
        return AgentExitCode.NOTHING
    return (
        AgentExitCode.OK
        if all(attempt.is_complete for attempt in attempts)
        else AgentExitCode.INCOMPLETE
    )
