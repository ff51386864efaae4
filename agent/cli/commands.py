"""The commands of `toponaut-agent`: once, run, collectors, doctor.

stdout is data, stderr is the log.
"""

from __future__ import annotations

import logging
import random  # noqa: TID251 - this is an edge: it spreads retries
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import IntEnum
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click

from agent.cli.doctor import NodeTools, check_node
from agent.cli.options import KubeOptions, NodeOptions, RunOptions, SourceOptions
from agent.cli.output import OUTPUT, align_columns, render_text
from agent.collection import CollectorRun, NodeContext, RunOutcome, check_availability, collect
from agent.collectors.lldpd import read_version
from agent.loop import ReportLoop, RoundObserver
from agent.node.hcas import find_umads
from agent.node.link_flaps import DownCounters
from agent.node.pci import list_nvidia_gpus, list_unused_hcas
from agent.node.sysfs import Sysfs
from agent.node_report import build_reports
from agent.publish.destination import Destination
from agent.publish.directory import REPORTS, ReportFolder, document_of, render_document
from agent.publish.kube.https_client import OnAnswer
from agent.publish.kube.report_writer import ReportWriter
from agent.settings import FrameMode, max_sweep_time_s
from agent.sweep_schedule import SweepSchedule, find_sweep_run
from agent.telemetry.health import Liveness, health_pages, serve_pages
from runtime.checks import Outcome, document_of_checks, render_checks
from runtime.options import collect_values, list_params
from runtime.program import (
    Interrupted,
    call_on_stop_signal,
    interruptible,
    start_command,
    stop_signals,
)
from runtime.retry import Cooldown, Uniform
from topology.model.errors import ConfigError, StoreError, WriteError

log = logging.getLogger(__name__)

_UNIFORM: Final[Uniform] = random.SystemRandom().uniform


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
    """A command group; a stop signal interrupts its commands."""

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


def _command(run: Callable[..., None]) -> click.Command:
    """Add a command with the options that its parameters declare.

    A file that it cannot open is a usage error. A folder that it cannot write is not: it may be the
    right folder.
    """

    @wraps(run)
    def call(**values: Any) -> None:  # noqa: ANN401 - click's
        try:
            run(**collect_values(run, values))
        except WriteError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(AgentExitCode.FAILED)
        except (ConfigError, StoreError) as error:
            raise click.UsageError(str(error)) from error

    settings = {"auto_envvar_prefix": "TOPONAUT_AGENT"}
    return cli.command(params=[*list_params(run)], context_settings=settings)(call)


@_command
def once(*, output: str = OUTPUT, options: NodeOptions, kube: KubeOptions) -> None:
    """Collect once and print the reports.

    The command does not wait for LLDP frames, unless --listen-for or --frames always is given.

    Exit codes: 0 all collectors worked, even if they found nothing; 3 some collectors failed, or
    part of their input was unreadable; 4 some failed and none found anything; 2 wrong usage;
    1 the reports could not be printed; 130 interrupted.
    """
    node = _open_node_for_once(options)
    server = None
    if options.source.kube:
        server = kube.open_client(_cooldown(node))
    sweep_schedule = SweepSchedule(node.settings, node.clock, options.source.open_elections(server))
    node = replace(node, settings=sweep_schedule.update_from_election())
    attempts = _collect_once(node)
    sweep = find_sweep_run(attempts)
    sweeping = sweep_schedule.record_sweep(node.settings, sweep) if sweep else None
    reports = build_reports(node.settings, attempts, now=node.clock.now(), sweeping=sweeping)
    if output == "text":
        _print(render_text(reports))
    else:
        items = [document_of(report) for report in reports]
        _print_document({"apiVersion": "v1", "kind": "List", "items": items}, output)
    sys.exit(_derive_exit_code(attempts))


@_command
def run(*, rounds: RunOptions, options: NodeOptions, kube: KubeOptions) -> None:
    """Collect periodically and publish changes, until SIGTERM or SIGINT."""
    folder = _find_report_folder(rounds, options.source, kube)
    node = options.open_node()
    with ExitStack() as stack:
        stack.callback(node.close)
        liveness = Liveness(
            period_s=rounds.period_s + rounds.jitter_s,
            clock=node.clock,
            sweeping_s=max_sweep_time_s(node.settings),
        )
        observers: list[RoundObserver] = [liveness]
        stack.enter_context(serve_pages(rounds.health_listen, health_pages(liveness)))
        on_answer: OnAnswer | None = None
        if rounds.metrics_listen is not None:
            from agent.telemetry.metrics import AgentMetrics  # noqa: PLC0415 - it takes the most memory

            metrics = AgentMetrics(version=version("toponaut"), clock=node.clock)
            observers.append(metrics)
            on_answer = metrics.record_answer
            stack.enter_context(serve_pages(rounds.metrics_listen, {"/metrics": metrics.render}))
        server, name = None, node.settings.node_name
        if folder is None:
            cooldowns = [_cooldown(node, rounds.period_s) for _ in range(2)]
            server = kube.open_client(cooldowns[0], on_answer)
            destination: Destination = ReportWriter(
                server, name, node.clock, _UNIFORM, cooldown=cooldowns[1]
            )
        else:
            destination = ReportFolder(folder, name)
            destination.prepare()
        elections = options.source.open_elections(server)
        loop = ReportLoop(node, destination, elections, observers)
        _run_rounds(loop, node, period_s=rounds.period_s, jitter_s=rounds.jitter_s)


@_command
def collectors(*, output: str = OUTPUT, options: NodeOptions) -> None:
    """List the collectors, which of them can work on this node, and why the others cannot."""
    reasons = check_availability(options.open_node())
    if output == "text":
        cells = [(name, "no" if reason else "yes", reason) for name, reason in reasons.items()]
        _print("\n".join(align_columns([("COLLECTOR", "AVAILABLE", "REASON"), *cells])))
        return
    _print_document(
        [
            {"name": name, "available": not reason, "reason": reason}
            for name, reason in reasons.items()
        ],
        output,
    )


@_command
def doctor(*, output: str = OUTPUT, options: NodeOptions) -> None:
    """Check that this node can be read, and print what to do.

    Collects once, without a sweep, and publishes nothing. For a cluster, run toponaut doctor.

    Exit codes: 0 nothing is wrong, or only warnings; 5 there is an error; 2 wrong usage.
    """
    node = _open_node_for_once(options)
    node = replace(node, settings=node.settings._replace(sweep=None))
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
    if output == "text":
        _print(render_checks(checks))
    else:
        _print_document(document_of_checks(checks), output)
    if any(row.outcome is Outcome.ERROR for row in checks):
        sys.exit(AgentExitCode.CHECK_FAILED)


def _open_node_for_once(options: NodeOptions) -> NodeContext:
    """Return the node for a single collection, which waits for LLDP frames only if it must."""
    settings = options.settings
    frames = settings.frames
    if frames is not None and frames.mode is FrameMode.AUTO and _is_default("listen_for"):
        settings = settings._replace(frames=frames._replace(listen_s=0.0))
    node = options._replace(settings=settings).open_node()
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


def _find_report_folder(
    rounds: RunOptions, source: SourceOptions, kube: KubeOptions
) -> Path | None:
    """Return the folder for reports, or None if they go to the cluster.

    Raises:
        ConfigError: the options name both or neither.
    """
    folder = rounds.publish or (source.store / REPORTS if source.store else None)
    if source.kube == (folder is not None):
        raise ConfigError("set where reports go: either --kube, or --store or --publish")
    if kube.api_server and not source.kube:
        raise ConfigError("--api-server needs --kube: without it, reports go into a folder")
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


def _cooldown(node: NodeContext, period_s: float = 0.0) -> Cooldown:
    return Cooldown(node.clock, _UNIFORM, period_s=period_s)


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
