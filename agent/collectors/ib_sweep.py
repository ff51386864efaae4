"""Whole InfiniBand subnets as ibnetdiscover sees them from this node; only chosen nodes sweep.

A sweep that found nothing is a failure, never an empty fabric. A sweep in which every query timed
out counts as refused: an M_Key guards the fabric, or its first switch is dead. A sweep that lost
some answers counts: the cables that it saw exist.

Source: rdma-core's libibnetdisc/query_smp.c and ibnetdisc.c for the messages about lost queries;
infiniband-diags 44 exits with 255 if not even the node's own HCA answers, otherwise with 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from agent.collectors.probe import (
    CollectedFacts,
    Collector,
    SourceAbsent,
    SourceCutOff,
    SweepDump,
    SweepFailed,
)
from agent.node.command import CommandLimits, CommandResult, Runner, tail_of
from agent.node.hcas import INFINIBAND, UMAD_FOLDER, list_hcas, list_switch_bridges
from agent.node.mounts import explain_deleted_mount
from agent.node.sysfs import Sysfs
from agent.settings import DEFAULT_SUBNET, AgentSettings, SweepSettings
from topology.model.errors import CollectError, CommandFailed, CutInput, ParseError, show
from topology.model.facts import Device
from topology.model.ids import natural_key, parse_guid
from topology.sources.ibnetdiscover.cut_sweep import find_cut
from topology.sources.ibnetdiscover.parser import parse_rows
from topology.sources.ibnetdiscover.printer import print_rows
from topology.sources.ibnetdiscover.rows import SWITCH

_NO_HARDWARE: Final = "can't open UMAD port"
_LOST_ANSWER: Final = "timed out"
_NO_ANSWER: Final = ("_do_madrpc failed", "Failed to resolve self")
"""The messages if even the first query, which goes to the node's own HCA, got no answer."""


class _SubnetSweep(NamedTuple):
    """One subnet to sweep, and the command for it."""

    subnet: str
    argv: tuple[str, ...]


class _SweepResult(NamedTuple):
    """The result of one sweep."""

    sweep: SweepDump
    skipped: tuple[ParseError, ...]
    note: str


class _SweepRefused(CollectError):  # noqa: N818 - reads as what happened
    """Every query timed out."""


def find_absence(settings: AgentSettings, runner: Runner) -> SourceAbsent | None:
    """Return why this node does not sweep, or None if it seems able to."""
    if settings.sweep is None:
        return SourceAbsent("sweeping is off (see --sweep)")
    program = settings.sweep.command[0]
    if runner.find(program) is None:
        reason = f"{show(program)} not found: is infiniband-diags installed?"
        return SourceAbsent(reason, _find_evidence(settings))
    return None


def _find_evidence(settings: AgentSettings) -> str:
    """Return a sentence that names the InfiniBand ports to sweep from; empty without ports."""
    ports = list(_list_ports(Sysfs(settings.sysfs_root)))
    plural = "s" if len(ports) > 1 else ""
    return f"this node has {len(ports)} InfiniBand port{plural}" if ports else ""


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the canonical text of each subnet; nothing if this node must not sweep.

    Raises:
        SourceAbsent: the sweep program is missing, or there is no InfiniBand device to open;
            expected if the node has InfiniBand ports.
        SourceCutOff: the folder of the device files was deleted after it was mounted here.
        SweepFailed: no subnet could be swept.
    """
    sweep = settings.sweep
    if sweep is None:
        return CollectedFacts(note="sweeping is off")
    if sweep.targets is not None:
        absence = find_absence(settings, runner)
        if absence is not None:
            raise absence
    if sweep.targets == ():
        return CollectedFacts(note="not elected to sweep")
    results: list[_SweepResult] = []
    problems: list[tuple[_SubnetSweep, CollectError]] = []
    for subnet_sweep in _plan_sweeps(settings, sweep):
        try:
            results.append(_run_sweep(subnet_sweep, sweep, runner))
        except CollectError as error:
            problems.append((subnet_sweep, error))
    failed, refused = _split_failed_subnets(problems)
    message = _join_messages(problems, has_many=len(results) + len(problems) > 1)
    if not results:
        if all(isinstance(error, SourceAbsent) for _, error in problems):
            # A reloaded driver deletes its device files and then their folder, and makes both anew.
            deletion = explain_deleted_mount(
                str(UMAD_FOLDER), "a new device file", proc_root=settings.proc_root
            )
            if deletion:
                raise SourceCutOff(deletion)
            raise SourceAbsent(message, _find_evidence(settings))
        raise SweepFailed(message, failed=failed, refused=refused)
    return CollectedFacts(
        sweeps=tuple(result.sweep for result in results),
        failed_subnets=failed,
        refused_subnets=refused,
        errors=tuple(problem for result in results for problem in result.skipped),
        note="; ".join(part for part in (*(result.note for result in results), message) if part),
    )


def _plan_sweeps(settings: AgentSettings, sweep: SweepSettings) -> tuple[_SubnetSweep, ...]:
    if sweep.targets is None:
        return (_plan_local_sweep(Sysfs(settings.sysfs_root), sweep),)
    return tuple(
        _SubnetSweep(target.subnet, (*sweep.command, "-C", target.device, "-P", str(target.port)))
        for target in sweep.targets
    )


def _split_failed_subnets(
    problems: Iterable[tuple[_SubnetSweep, CollectError]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the subnets that failed, and those that refused."""
    lost = {(isinstance(error, _SweepRefused), sweep.subnet) for sweep, error in problems}
    failed = sorted(subnet for is_refused, subnet in lost if not is_refused)
    refused = sorted(subnet for is_refused, subnet in lost if is_refused)
    return tuple(failed), tuple(refused)


def _join_messages(problems: Iterable[tuple[_SubnetSweep, CollectError]], *, has_many: bool) -> str:
    return "; ".join(
        f"subnet {sweep.subnet}: {error}" if has_many else str(error) for sweep, error in problems
    )


def _run_sweep(sweep: _SubnetSweep, settings: SweepSettings, runner: Runner) -> _SweepResult:
    result = runner.run(sweep.argv, CommandLimits(settings.deadline_s, settings.max_output_bytes))
    num_lost = sum(_LOST_ANSWER in line for line in result.stderr.splitlines())
    if result.exit_code != 0:
        raise _failure(sweep.argv[0], result, num_lost)
    parser = parse_rows(result.stdout, source="ibnetdiscover")
    if SWITCH not in parser.rows.letters:
        if num_lost:
            raise _SweepRefused(_refusal(num_lost) + tail_of(result.stderr))
        raise CollectError("the sweep found no switch" + tail_of(result.stderr))
    cut = find_cut(parser)
    if isinstance(cut, CutInput):
        raise CollectError(cut.problem)
    return _SweepResult(
        SweepDump(sweep.subnet, print_rows(parser.rows)),
        tuple(parser.errors),
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
    return f"refused: every query{count} timed out; an M_Key may guard the fabric"


def restore(_device: Device) -> CollectedFacts:
    """Return no facts: a sweep has its own reports, which stay until a new sweep replaces them."""
    return CollectedFacts()


COLLECTOR: Final = Collector(collect, find_absence, restore)


def _list_ports(root: Sysfs) -> Iterator[tuple[str, str]]:
    """Yield the HCA and the number of each InfiniBand port of this node."""
    for name in list_hcas(root):
        ports = f"{INFINIBAND}/{name}/ports"
        for number in sorted(root.list_names(ports), key=natural_key):
            if root.read(f"{ports}/{number}/link_layer") == "InfiniBand":
                yield name, number


def _plan_local_sweep(root: Sysfs, sweep: SweepSettings) -> _SubnetSweep:
    """Return the sweep from the command's port; without one, from the first active port.

    On its own, ibnetdiscover takes the first HCA, which may be a bridge to the node's NVSwitches.
    """
    command = sweep.command
    device, port = _option(command, "-C"), _option(command, "-P")
    active = next(
        (
            (name, number, prefix)
            for name, number in _list_ports(root)
            if device in (None, name) and port in (None, number)
            for prefix in _find_active_prefix(root, name, number)
        ),
        None,
    )
    if active is None:
        return _SubnetSweep(sweep.subnet or DEFAULT_SUBNET, command)
    name, number, prefix = active
    if device is None and port is None and list_switch_bridges(root):
        command = (*command, "-C", name, "-P", number)
    return _SubnetSweep(sweep.subnet or prefix, command)


def _find_active_prefix(root: Sysfs, name: str, number: str) -> Iterator[str]:
    """Yield the prefix of the subnet of a port, if the port is active."""
    base = f"{INFINIBAND}/{name}/ports/{number}"
    prefix = parse_guid((root.read(f"{base}/gids/0") or "").replace(":", "")[:16])
    if prefix and "ACTIVE" in (root.read(f"{base}/state") or ""):
        yield prefix


def _option(command: tuple[str, ...], name: str) -> str | None:
    return command[command.index(name) + 1] if name in command[:-1] else None
