"""The NVLink domain of this node's GPUs, read with `nvidia-smi`.

A node without GPUs, or with GPUs that reach no other node, is in no domain. On a node whose PCI
bus shows GPUs, an nvidia-smi that is missing or finds none hides the domain, which is a failure.
In containers this is common: without the runtime class of NVIDIA, there is no nvidia-smi.

Source: aws/eks-node-monitoring-agent issue 241, where a DaemonSet without the runtime class found
no GPU and said that all is well; NVIDIA/nvidia-container-runtime issue 147.
"""

from __future__ import annotations

from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import CommandResult, Runner, tail_of
from agent.node.pci import list_nvidia_gpus, name_functions
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings, NvlinkMode
from topology.model.errors import CollectError, CommandFailed, show
from topology.model.facts import Device, Medium
from topology.sources.host.nvidia_smi import (
    FIELDS,
    build_clique_port,
    derive_clique,
    parse_gpu_fabrics,
)

_CSV: Final = (f"--query-gpu={','.join(FIELDS)}", "--format=csv")
_FULL_QUERY: Final = ("-q",)
_NOT_A_FIELD: Final = "is not a valid field to query"
# The messages of nvidia-smi, on stdout, with exit codes 6 and 9 on a node whose GPUs are gone or
# belong to a virtual machine.
_NO_GPU: Final = ("No devices were found", "couldn't communicate with the NVIDIA driver")


def find_absence(settings: AgentSettings, runner: Runner) -> SourceAbsent | None:
    """Return why no GPU can be queried, or None if nvidia-smi is installed."""
    if settings.nvlink is NvlinkMode.NEVER:
        return SourceAbsent("reading is off (see --nvlink)")
    if runner.find(settings.nvidia_smi) is None:
        return SourceAbsent(f"{show(settings.nvidia_smi)} not found", find_evidence(settings))
    return None


def find_evidence(settings: AgentSettings) -> str:
    """Return a sentence about the GPUs that nvidia-smi should show; empty without GPUs."""
    return name_functions("NVIDIA GPU", list_nvidia_gpus(Sysfs(settings.sysfs_root)))


def collect(settings: AgentSettings, runner: Runner) -> CollectedFacts:
    """Return the port that stands for this node's NVLink domain; no port without a domain.

    Raises:
        SourceAbsent: there is no nvidia-smi, or it finds no GPU; expected if PCI shows GPUs.
        CollectError: nvidia-smi fails or hangs, or no GPU has finished its registration.
    """
    absence = find_absence(settings, runner)
    if absence is not None:
        raise absence
    gpus, errors = parse_gpu_fabrics(_query_gpus(settings, runner), source="nvidia-smi")
    result = derive_clique(gpus)
    if not result.is_settled:
        # While GPUs register, such as after a boot, the domain is unknown.
        raise CollectError(result.note)
    return CollectedFacts(
        ports=(build_clique_port(result.clique),) if result.clique else (),
        errors=errors,
        note=result.note or ("" if result.clique else "not in a multi-node NVLink domain"),
    )


def restore(device: Device) -> CollectedFacts:
    """Return the NVLink domain in a report."""
    return CollectedFacts(
        ports=tuple(port for port in device.ports if port.medium is Medium.NVLINK)
    )


COLLECTOR: Final = Collector(collect, find_absence, restore)


def _query_gpus(settings: AgentSettings, runner: Runner) -> str:
    """Return the output of nvidia-smi: the four fields or, if it lacks them, the full query."""
    result = _run(settings, runner, _CSV)
    if result.exit_code and _NOT_A_FIELD in _error_text(result):
        result = _run(settings, runner, _FULL_QUERY)
    text = _error_text(result)
    if result.exit_code == 0:
        return result.stdout.decode("utf-8", "replace")
    absent = next((phrase for phrase in _NO_GPU if phrase in text), None)
    if absent:
        raise SourceAbsent(f"{show(settings.nvidia_smi)}: {absent}", find_evidence(settings))
    raise CommandFailed(f"{show(settings.nvidia_smi)}: exit {result.exit_code}{tail_of(text)}")


def _run(settings: AgentSettings, runner: Runner, words: tuple[str, ...]) -> CommandResult:
    limits = settings.limits
    return runner.run((settings.nvidia_smi, *words), limits)


def _error_text(result: CommandResult) -> str:
    return f"{result.stdout.decode('utf-8', 'replace')}\n{result.stderr}"
