"""The commands of `toponaut-agent`: once, run, collectors, doctor.

stdout is data, stderr is the log.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import click

from agent.cli.doctor import NodeTools, check_node
from agent.cli.options import (
    NODE_OPTIONS,
    ApiServerAccess,
    KubeOptions,
    RunOptions,
    SourceOptions,
    Values,
    open_node,
    options_of,
    read_group,
)
from agent.cli.output import OutputOptions, align_columns, render_text
from agent.collection import CollectorRun, NodeContext, RunOutcome, check_availability, collect
from agent.collectors.lldpd import read_version
from agent.loop import ReportLoop
from agent.node.hcas import find_umads
from agent.node.link_flaps import DownCounters
from agent.node.pci import list_nvidia_gpus, list_unused_hcas
from agent.node.sysfs import Sysfs
from agent.node_report import build_reports
from agent.publish.destination import Destination
from agent.publish.directory import REPORTS, ReportFolder, document_of, render_document
from agent.publish.kube.https_client import OnAnswer
from agent.settings import FrameMode, max_sweep_time_s
from agent.sweep_schedule import ElectionSource, SweepSchedule, find_sweep_run
from agent.telemetry.health import serve_endpoints
from runtime.checks import Outcome, document_of_checks, render_checks
from runtime.program import (
    Interrupted,
    call_on_stop_signal,
    interruptible,
    start_command,
    stop_signals,
)
from topology.model.errors import ConfigError, StoreError, WriteError

log = logging.getLogger(__name__)


class AgentExitCode(IntEnum):
    """The exit codes; click itself exits with 2 for wrong usage."""

    OK = 0
    FAILED = 1
    """Internal error, or a write failed."""
    USAGE = 2
    INCOMPLETE = 3
    """Reports were printed, but a collector failed or part of an input was unreadable."""
    NOTHING = 4
    """No collector found anything and at least one failed."""
    CHECK_FAILED = 5
    """A check of the node found an error."""


class _AgentCommands(click.Group):
    """A command group whose commands stop signals interrupt."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        with interruptible():
            start_command()
            return super().invoke(ctx)


@click.group(
    cls=_AgentCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="toponaut", prog_name="toponaut-agent")
def cli() -> None:
    """Report the ports of this node and the neighbors that they are cabled to.

    Each option also has an environment variable, such as TOPONAUT_AGENT_NODE_NAME.
    """


@cli.command()
@options_of(OutputOptions, *NODE_OPTIONS, KubeOptions)
def once(**values: Any) -> None:  # noqa: ANN401 - click's
    """Collect once and print the reports.

    The command does not wait for LLDP frames, unless --listen-for or --frames always is given.

    Exit codes: 0 all collectors worked, even if they found nothing; 3 some collectors failed, or
    part of their input was unreadable; 4 some failed and none found anything; 2 wrong usage;
    1 the reports could not be printed; 130 interrupted.
    """
    node = _open_node_for_once(values)
    sweep_schedule = SweepSchedule(node.settings, node.clock, _elections(values, node))
    node = replace(node, settings=sweep_schedule.current_settings())
    attempts = _collect_once(node)
    sweep = find_sweep_run(attempts)
    sweeping = sweep_schedule.record_sweep(node.settings, sweep) if sweep else None
    reports = build_reports(node.settings, attempts, now=node.clock.now(), sweeping=sweeping)
    output = read_group(OutputOptions, values).output
    if output == "text":
        _print(render_text(reports))
    else:
        items = [document_of(report) for report in reports]
        _print_document({"apiVersion": "v1", "kind": "List", "items": items}, output)
    sys.exit(_derive_exit_code(attempts))


@cli.command()
@options_of(RunOptions, *NODE_OPTIONS, KubeOptions)
def run(**values: Any) -> None:  # noqa: ANN401 - click's
    """Collect periodically and publish changes, until SIGTERM or SIGINT."""
    options, folder = read_group(RunOptions, values), _report_folder(values)
    period_s, jitter_s = options.period_s, options.jitter_s
    node = open_node(values)
    with ExitStack() as stack:
        stack.callback(node.close)
        with _as_usage_errors():
            observers = stack.enter_context(
                serve_endpoints(
                    options.health_listen,
                    options.metrics_listen,
                    period_s=period_s + jitter_s,
                    sweeping_s=max_sweep_time_s(node.settings),
                    clock=node.clock,
                )
            )
            if folder is None:
                cluster = _cluster(values, node, period_s=period_s, on_answer=observers.on_answer)
                destination: Destination = cluster.open_report_writer(node.settings.node_name)
                elections: ElectionSource | None = cluster.open_fabric_reader()
            else:
                destination = _open_folder(folder, node)
                elections = read_group(SourceOptions, values).fabric_file()
        loop = ReportLoop(node, destination, elections, observers.round_observers)
        _run_rounds(loop, node, period_s=period_s, jitter_s=jitter_s)


@cli.command()
@options_of(OutputOptions, *NODE_OPTIONS)
def collectors(**values: Any) -> None:  # noqa: ANN401 - click's
    """List the collectors, which of them can work on this node, and why the others cannot."""
    rows = check_availability(open_node(values))
    output = read_group(OutputOptions, values).output
    if output == "text":
        cells = [(row.collector, "no" if row.reason else "yes", row.reason) for row in rows]
        _print("\n".join(align_columns([("COLLECTOR", "AVAILABLE", "REASON"), *cells])))
        return
    _print_document(
        [
            {"name": row.collector, "available": not row.reason, "reason": row.reason}
            for row in rows
        ],
        output,
    )


@cli.command()
@options_of(OutputOptions, *NODE_OPTIONS)
def doctor(**values: Any) -> None:  # noqa: ANN401 - click's
    """Check that this node can be read, and print what to do.

    Collects once, without a sweep, and publishes nothing. For a cluster, run toponaut doctor.

    Exit codes: 0 nothing is wrong, or only warnings; 5 there is an error; 2 wrong usage.
    """
    node = _open_node_for_once(values)
    node = replace(node, settings=replace(node.settings, sweep=None))
    attempts = _collect_once(node)
    root = Sysfs(node.settings.sysfs_root)
    counters = DownCounters(root)
    counters.read((port for run in attempts for port in run.facts.ports), node.clock.monotonic())
    tools = NodeTools(
        has_program=lambda name: node.runner.find(name) is not None,
        lldpcli_version=read_version(node.settings, node.runner),
        umads=find_umads(),
        gpus=list_nvidia_gpus(root),
        unused_hcas=list_unused_hcas(root),
        refused=counters.refused,
    )
    checks = check_node(attempts, tools)
    output = read_group(OutputOptions, values).output
    if output == "text":
        _print(render_checks(checks))
    else:
        _print_document(document_of_checks(checks), output)
    if any(row.outcome is Outcome.ERROR for row in checks):
        sys.exit(AgentExitCode.CHECK_FAILED)


def _open_node_for_once(values: dict[str, Any]) -> NodeContext:
    """Return the node for a single collection, which waits for LLDP frames only if it must."""
    if _is_default("listen_for") and values["frames"] is FrameMode.AUTO:
        values["listen_for"] = 0.0
    node = open_node(values)
    return replace(node, wait=node.stop.wait)


def _collect_once(node: NodeContext) -> tuple[CollectorRun, ...]:
    """Run every collector once, and release the node.

    Raises:
        Interrupted: a stop signal arrived.
    """
    try:
        with call_on_stop_signal(node.stop.set) as received:
            attempts = collect(node, {})
    finally:
        node.close()
    if number := received():
        raise Interrupted(number)
    return attempts


def _report_folder(values: Values) -> Path | None:
    """Return the folder for reports, or None if they go to the cluster.

    Raises:
        click.UsageError: the options name both or neither.
    """
    source, publish = read_group(SourceOptions, values), read_group(RunOptions, values).publish
    folder = publish or (source.store / REPORTS if source.store else None)
    if source.kube == (folder is not None):
        raise click.UsageError("set where reports go: either --kube, or --store or --publish")
    if values["api_server"] and not source.kube:
        raise click.UsageError("--api-server needs --kube: without it, reports go into a folder")
    return folder


def _open_folder(path: Path, node: NodeContext) -> ReportFolder:
    folder = ReportFolder(path, node.settings.node_name)
    folder.prepare()
    return folder


def _run_rounds(loop: ReportLoop, node: NodeContext, *, period_s: float, jitter_s: float) -> None:
    """Run rounds until a stop signal; then cut a running round short and wait for its end."""
    from runtime.periodic import PeriodicJob  # noqa: PLC0415 - other commands do not load it

    with stop_signals() as wait_for_stop:
        log.info("agent started", extra={"period_s": period_s})
        job = PeriodicJob(loop.tick, period_s=period_s, jitter_s=jitter_s, now=node.clock.now)
        log.info("agent stopping", extra={"signal": wait_for_stop()})
        node.stop.set()
        job.stop()


def _elections(values: Values, node: NodeContext) -> ElectionSource | None:
    """Return the source of elections for a single collection, or None if it needs none."""
    source = read_group(SourceOptions, values)
    if not source.kube:
        return source.fabric_file()
    with _as_usage_errors():
        return _cluster(values, node).open_fabric_reader()


def _cluster(
    values: Values, node: NodeContext, *, period_s: float = 0.0, on_answer: OnAnswer | None = None
) -> ApiServerAccess:
    return ApiServerAccess(
        read_group(KubeOptions, values),
        node.clock,
        sweep_mode=read_group(SourceOptions, values).sweep_mode(),
        period_s=period_s,
        on_answer=on_answer,
    )


@contextmanager
def _as_usage_errors() -> Iterator[None]:
    """Turn an error of opening an address, a folder or a server into a usage error.

    A folder that cannot be written may be the right one.
    """
    try:
        yield
    except WriteError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(AgentExitCode.FAILED)
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
    # As bytes: the locale may lack characters of neighbors' names.
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
