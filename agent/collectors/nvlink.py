"""The NVLink domain of this node's GPUs, asked of `nvidia-smi`.

A node without GPUs, without driver, or with GPUs that reach no other node has none.
"""

from __future__ import annotations

from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import CommandResult, CommandLimits, Runner, tail_of
from agent.settings import AgentSettings
from topology.model.errors import CollectError, CommandFailed, show
from topology.model.facts import Device, Medium
from topology.sources.host.nvidia_smi import (
    FIELDS,
    derive_clique,
    parse_gpu_fabrics,
    build_clique_port,
)

_CSV: Final = (f"--query-gpu={','.join(FIELDS)}", "--format=csv")
_FULL_QUERY: Final = ("-q",)
_NOT_A_FIELD: Final = "is not a valid field to query"
# What nvidia-smi says, on stdout, with exit codes 6 and 9 on a node whose GPUs are gone or
# belong to a virtual machine.
_NO_GPU: Final = ("No devices were found", "couldn't communicate with the NVIDIA driver")


def explain_absence(settings: AgentSettings, runner: Runner) -> str | None:
    """Return why no GPU can be asked, None when nvidia-smi is there."""
    if runner.find(settings.nvidia_smi) is None:
        return f"{show(settings.nvidia_smi)} not found"
    return None


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the port by which this node is in an NVLink domain; none where it is in none.

    Raises:
        SourceAbsent: there is no nvidia-smi, or it finds no GPU.
        CollectError: it fails or hangs, or no GPU has finished its registration.
    """
    missing = explain_absence(settings, runner)
    if missing:
        raise SourceAbsent(missing)
    gpus, errors = parse_gpu_fabrics(_query_gpus(settings, runner), source="nvidia-smi")
    found = derive_clique(gpus)
    if not found.is_settled:
        # While GPUs register, as after a boot, the domain is unknown rather than none.
        raise CollectError(found.note)
    return CollectedFacts(
        ports=(build_clique_port(found.clique),) if found.clique else (),
        errors=errors,
        note=found.note or ("" if found.clique else "in no multi-node NVLink domain"),
    )


def restore(device: Device) -> CollectedFacts:
    """Return the NVLink domain that a report tells of."""
    return CollectedFacts(
        ports=tuple(port for port in device.ports if port.medium is Medium.NVLINK)
    )


COLLECTOR: Final = Collector(collect, explain_absence, restore)


def _query_gpus(settings: AgentSettings, runner: Runner) -> str:
    """Return what nvidia-smi prints: the four fields or, where it lacks them, all it knows."""
    result = _run(settings, runner, _CSV)
    if result.exit_code and _NOT_A_FIELD in _error_text(result):
        result = _run(settings, runner, _FULL_QUERY)
    said = _error_text(result)
    if result.exit_code == 0:
        return result.stdout.decode("utf-8", "replace")
    absent = next((words for words in _NO_GPU if words in said), None)
    if absent:
        raise SourceAbsent(f"{show(settings.nvidia_smi)}: {absent}")
    raise CommandFailed(f"{show(settings.nvidia_smi)}: exit {result.exit_code}{tail_of(said)}")


def _run(settings: AgentSettings, runner: Runner, words: tuple[str, ...]) -> CommandResult:
    limits = CommandLimits(settings.deadline_s, settings.max_output_bytes)
    return runner.run((settings.nvidia_smi, *words), limits)


def _error_text(result: CommandResult) -> str:
    return f"{result.stdout.decode('utf-8', 'replace')}\n{result.stderr}"
