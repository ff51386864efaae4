"""Whole InfiniBand subnets as ibnetdiscover sees them from this node; only elected nodes sweep.

A sweep that found nothing is a failure and never an empty fabric, and one in which every query
timed out was refused: an M_Key guards the fabric, or its first switch is dead. One that lost some
answers is kept: the cables it did see are there.

Source: rdma-core's libibnetdisc/query_smp.c and ibnetdisc.c for what is complained of lost
queries; infiniband-diags 44 ends with 255 where not even the own HCA answers, else with 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent, SweepDump, SweepFailed
from agent.node.command import CommandResult, CommandLimits, Runner, tail_of
from agent.node.sysfs import Sysfs
from agent.settings import DEFAULT_SUBNET, AgentSettings, SweepSettings
from topology.model.errors import CollectError, CommandFailed, ParseError, show
from topology.model.facts import Device, DeviceKind
from topology.model.ids import natural_key, parse_guid
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover, render_ibnetdiscover

_INFINIBAND = "class/infiniband"
_NO_HARDWARE: Final = "can't open UMAD port"
_LOST_ANSWER: Final = "timed out"
_NO_ANSWER: Final = ("_do_madrpc failed", "Failed to resolve self")
"""What is said where even the first query, which goes to the own HCA, got no answer."""


class _SubnetSweep(NamedTuple):
    """One subnet to sweep, and how."""

    subnet: str
    argv: tuple[str, ...]


class _SweepResult(NamedTuple):
    """What one sweep saw."""

    sweep: SweepDump
    skipped: tuple[ParseError, ...]
    note: str


class _SweepRefused(CollectError):  # noqa: N818 - reads as what happened
    """Every query timed out."""


def explain_absence(settings: AgentSettings, runner: Runner) -> str | None:
    """Return why this node does not sweep, None when it seems that it can."""
    if settings.sweep is None:
        return "not asked to sweep (--sweep)"
    program = settings.sweep.command[0]
    if runner.find(program) is None:
        return f"{show(program)} not found: is infiniband-diags installed?"
    return None


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the canonical text of each subnet; nothing where this node is not to sweep.

    Raises:
        SourceAbsent: there is no program to sweep with, or no InfiniBand device to open.
        SweepFailed: no subnet could be swept.
    """
    sweep = settings.sweep
    if sweep is None:
        return CollectedFacts(note="not asked to sweep")
    if sweep.targets is not None:
        reason = explain_absence(settings, runner)
        if reason is not None:
            raise SourceAbsent(reason)
    if sweep.targets == ():
        return CollectedFacts(note="not elected to sweep")
    found: list[_SweepResult] = []
    problems: list[tuple[_SubnetSweep, CollectError]] = []
    for turn in _plan_sweeps(settings, sweep):
        try:
            found.append(_run_sweep(turn, sweep, runner))
        except CollectError as error:
            problems.append((turn, error))
    failed, refused = _split_failed_subnets(problems)
    message = _join_messages(problems, has_many=len(found) + len(problems) > 1)
    if not found:
        if all(isinstance(error, SourceAbsent) for _, error in problems):
            raise SourceAbsent(message)
        raise SweepFailed(message, failed=failed, refused=refused)
    return CollectedFacts(
        sweeps=tuple(one.sweep for one in found),
        failed_subnets=failed,
        refused_subnets=refused,
        errors=tuple(problem for one in found for problem in one.skipped),
        note="; ".join(part for part in (*(one.note for one in found), message) if part),
    )


def _plan_sweeps(settings: AgentSettings, sweep: SweepSettings) -> tuple[_SubnetSweep, ...]:
    if sweep.targets is None:
        return (_SubnetSweep(sweep.subnet or _local_subnet(settings, sweep), sweep.command),)
    return tuple(
        _SubnetSweep(one.subnet, (*sweep.command, "-C", one.device, "-P", str(one.port)))
        for one in sweep.targets
    )


def _split_failed_subnets(
    problems: Iterable[tuple[_SubnetSweep, CollectError]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the subnets that failed, and those that refused."""
    lost = {(isinstance(error, _SweepRefused), turn.subnet) for turn, error in problems}
    failed, refused = (
        tuple(sorted(subnet for is_refused, subnet in lost if is_refused is wanted))
        for wanted in (False, True)
    )
    return failed, refused


def _join_messages(problems: Iterable[tuple[_SubnetSweep, CollectError]], *, has_many: bool) -> str:
    return "; ".join(
        f"subnet {turn.subnet}: {error}" if has_many else str(error) for turn, error in problems
    )


def _run_sweep(turn: _SubnetSweep, sweep: SweepSettings, runner: Runner) -> _SweepResult:
    result = runner.run(turn.argv, CommandLimits(sweep.deadline_s, sweep.max_output_bytes))
    num_lost = sum(_LOST_ANSWER in line for line in result.stderr.splitlines())
    if result.exit_code != 0:
        raise _failure(turn.argv[0], result, num_lost)
    parsed = parse_ibnetdiscover(result.stdout, source="ibnetdiscover")
    if not any(device.kind is DeviceKind.SWITCH for device in parsed.devices):
        if num_lost:
            raise _SweepRefused(_refusal(num_lost) + tail_of(result.stderr))
        raise CollectError("the sweep found no switch" + tail_of(result.stderr))
    return _SweepResult(
        SweepDump(turn.subnet, render_ibnetdiscover(parsed.devices)),
        parsed.errors,
        f"partial: {num_lost} queries timed out" if num_lost else "",
    )


def _failure(program: str, result: CommandResult, num_lost: int) -> CollectError:
    problem = f"{show(program)}: exit {result.exit_code}" + tail_of(result.stderr)
    if _NO_HARDWARE in result.stderr:
        return SourceAbsent(problem)
    is_refused = all(part in result.stderr for part in _NO_ANSWER) or (
        num_lost > 0 and not result.stdout.strip()
    )
    return (
        _SweepRefused(f"{_refusal(num_lost)}; {problem}") if is_refused else CommandFailed(problem)
    )


def _refusal(num_lost: int) -> str:
    count = f" ({num_lost})" if num_lost else ""
    return f"refused: every query{count} timed out, as an M_Key makes them"


def restore(_device: Device) -> CollectedFacts:
    """Return nothing: a sweep has reports of its own, which stay until a new one replaces them."""
    return CollectedFacts()


COLLECTOR: Final = Collector(collect, explain_absence, restore)


def _local_subnet(settings: AgentSettings, sweep: SweepSettings) -> str:
    """Return the prefix of the port that the command names, else of the first active one."""
    root = Sysfs(settings.sysfs_root)
    device, port = _option(sweep.command, "-C"), _option(sweep.command, "-P")
    for name in (device,) if device else root.list_names(_INFINIBAND):
        ports = f"{_INFINIBAND}/{name}/ports"
        for number in (port,) if port else sorted(root.list_names(ports), key=natural_key):
            is_active = "ACTIVE" in (root.read(f"{ports}/{number}/state") or "")
            is_fabric = root.read(f"{ports}/{number}/link_layer") == "InfiniBand"
            gid = (root.read(f"{ports}/{number}/gids/0") or "").replace(":", "")
            prefix = parse_guid(gid[:16])
            if is_active and is_fabric and prefix:
                return prefix
    return DEFAULT_SUBNET


def _option(command: tuple[str, ...], name: str) -> str | None:
    return command[command.index(name) + 1] if name in command[:-1] else None
