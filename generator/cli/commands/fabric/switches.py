"""`toponaut switches`: walk switches by SNMP and write their neighbors as reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.option_types import OutputFolder
from generator.cli.output import (
    Table,
    open_progress,
    print_document,
    print_problems,
    show_count,
)
from runtime.clock import utc_now
from runtime.program import Interrupted, noting_interruption
from topology.model.errors import ParseError, StoreError, TopologyError, show

if TYPE_CHECKING:
    import asyncio

    from generator.switches.targets import Target, TargetList
    from generator.switches.walk import SwitchWalk
    from topology.reports.neighbor_report import NeighborReport

ResultT = TypeVar("ResultT")
_COLUMNS: Final = ("ADDRESS", "OUTCOME", "SWITCH", "PORTS", "NEIGHBORS", "SECONDS")
_END_S: Final = 1.0
"""How long an interrupted walk may take to close its sockets."""


@options.command(
    "switches",
    examples=(
        "toponaut switches --config switches.yaml",
        "toponaut switches --config switches.yaml --out reports",
    ),
)
def command(
    *,
    config: Path = options.option(
        "YAML file with the switches, the files of their credentials, and networks to discover "
        "more in.",
        required=True,
    ),
    out: Path | None = options.option(
        "Folder for the reports; other commands read it with --reports.", type=OutputFolder()
    ),
    deadline: float = options.duration("Time limit for one switch.", default="60s"),
    parallel: int = options.number(
        1, 256, "Switches that are walked at the same time.", default=32
    ),
    output: str = options.OUTPUT,
) -> None:
    """Walk the switches once by SNMP (LLDP-MIB, LLDP-V2-MIB, CDP), and report their neighbors.

    Each switch becomes a report `switch-MAC`. If a switch does not answer, or stops answering
    during the walk, its last report is kept, and the other switches are walked. The config:

    \b
      switches:
        - addresses: [10.0.0.1, leaf02.example.org, 10.0.1.0/28]
          communityFile: community
        - addresses: [10.0.2.1]
          version: 3
          user: reader
          authKeyFile: auth-key
          privKeyFile: priv-key
      discover:
        networks: [10.0.0.0/16]
    """  # noqa: D301 - click's mark for lines that stay as they are
    from generator.switches.reports import build_reports
    from generator.switches.targets import read_targets
    from topology.reports.neighbor_report import render_report

    targets, warnings = read_targets(config)
    walks = _run_in_thread(partial(_walk_switches, targets, deadline_s=deadline, parallel=parallel))
    reports = build_reports(walks, observed_at=f"{utc_now():%Y-%m-%dT%H:%M:%SZ}")
    problems = [*warnings, *_collect_problems(walks)]
    if not reports:
        print_problems(problems)
        raise TopologyError("no switch returned any data; the reports are unchanged")
    failure = _write_reports(out, reports) if out else None
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [render_report(report) for report in reports],
    }
    print_document(
        document, output, text=lambda: Table(_COLUMNS, [_render_row(walk) for walk in walks])
    )
    if failure is not None:
        click.echo(f"error: {failure}", err=True)
    exit_with_problems(problems, ExitCode.INTERNAL if failure else None)


def _run_in_thread(call: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Return the result of a coroutine function, which a thread runs.

    A stop signal raises an exception at any line of the main thread. The event loop of asyncio is
    not made for that: it hangs, or prints a traceback.
    """
    import asyncio

    result: Future[ResultT] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def run_task() -> ResultT:
        task = asyncio.ensure_future(call())
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    def work() -> None:
        try:
            result.set_result(asyncio.run(run_task()))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            result.set_exception(error)

    thread = Thread(target=work, name="walks", daemon=True)
    thread.start()
    try:
        return result.result()
    except Interrupted:
        if started.done():
            loop, task = started.result()
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(task.cancel)
        thread.join(_END_S)
        raise


async def _walk_switches(
    targets: TargetList, *, deadline_s: float, parallel: int
) -> tuple[SwitchWalk, ...]:
    """Return all walks: of the listed switches, in order, then of the discovered switches."""
    from generator.switches.discovery import Frontier
    from generator.switches.session import SnmpSession
    from generator.switches.walk import walk_all, walk_switch

    frontier = Frontier(targets.targets, targets.discovery)
    walk_by_target: dict[Target, SwitchWalk] = {}
    with open_progress("walking switches") as progress:
        async with SnmpSession() as session:
            walk = partial(
                walk_switch, session=session, clock=time.monotonic, deadline_s=deadline_s
            )
            async for finished in walk_all(
                targets.targets, walk=walk, frontier=frontier, parallel=parallel
            ):
                walk_by_target[finished.target] = finished
                progress.show(
                    "walking switches",
                    num_done=len(walk_by_target),
                    total=len(targets.targets) + len(frontier.discovered),
                )
    return tuple(walk_by_target[target] for target in (*targets.targets, *frontier.discovered))


def _write_reports(folder: Path, reports: Iterable[NeighborReport]) -> StoreError | None:
    """Write the reports; a partial report must not replace an earlier one, which may be complete.

    Stops at the first write that fails, and returns its error.
    """
    from generator.store.object_folders import write_report
    from generator.switches.reports import is_complete

    num_done = 0
    try:
        with noting_interruption(lambda: f"{show_count(num_done, 'report')} done in {folder}"):
            for report in reports:
                if is_complete(report) or not (folder / f"{report.metadata.name}.yaml").exists():
                    write_report(folder, report)
                num_done += 1
    except StoreError as error:
        return error
    return None


def _collect_problems(walks: Sequence[SwitchWalk]) -> list[ParseError]:
    from generator.switches.walk import WalkOutcome

    failed = [
        ParseError(f"{walk.outcome.value}: {walk.reason}", source=_render_address(walk))
        for walk in walks
        if walk.outcome is not WalkOutcome.OK and _is_failure(walk)
    ]
    return [*failed, *(problem for walk in walks for problem in walk.problems)]


def _is_failure(walk: SwitchWalk) -> bool:
    """Return whether a walk failed; a discovered address, or one of a network, need not answer."""
    from generator.switches.walk import WalkOutcome

    return walk.target.is_expected or walk.outcome is not WalkOutcome.UNREACHABLE


def _render_address(walk: SwitchWalk) -> str:
    return f"switch {show(walk.target.address, 253)}"


def _render_row(walk: SwitchWalk) -> tuple[str, ...]:
    ports: Any = walk.device.ports if walk.device else ()
    num_neighbors = sum(len(port.neighbors) for port in ports)
    return (
        show(walk.target.address, 253),
        walk.outcome.value,
        show(walk.device.name) if walk.device else "",
        str(len(ports)) if walk.device else "",
        str(num_neighbors) if walk.device else "",
        f"{walk.duration_s:.1f}",
    )
