"""Translates sbatch of Slurm: options of a command line, or #SBATCH lines of a script.

Source: the sbatch manual page of Slurm 25.11.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

from generator.manifests.fields import MAX_INTEGER, Note
from generator.manifests.resource_units import ONE_SLOT
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GPU: Final = "nvidia.com/gpu"
_LEAF: Final = "1"
_MAX_WORDS: Final = 2048
"""argparse takes time quadratic in their number."""
_RANGE = re.compile(r"([0-9]{1,7})(k?)(?:-([0-9]{1,7})(k?))?\Z")
_MEMORY = re.compile(r"([0-9]{1,12})([KMGT]?)B?\Z", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#SBATCH\s+(.*)\Z")
_COMPONENT: Final = frozenset({":", "hetjob"})
_IN_BYTES: Final = {"K": 1 << 10, "": 1 << 20, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""Memory without a unit is in MiB."""
_COUNTS: Final = {
    "--ntasks": "-n",
    "--ntasks-per-node": "",
    "--cpus-per-task": "-c",
    "--segment": "",
}
_TEXTS: Final = {
    "--nodes": "-N",
    "--switches": "",
    "--gpus": "-G",
    "--gpus-per-node": "",
    "--gpus-per-task": "",
    "--gres": "",
    "--mem": "",
    "--job-name": "-J",
    "--priority": "",
}
IGNORABLE_OPTIONS: Final = {
    "--account": "-A",
    "--chdir": "-D",
    "--comment": "",
    "--error": "-e",
    "--export": "",
    "--mail-type": "",
    "--mail-user": "",
    "--output": "-o",
    "--partition": "-p",
    "--qos": "-q",
    "--time": "-t",
}


class _SbatchParser(argparse.ArgumentParser):
    """A parser that reports problems as errors of the request."""

    def error(self, message: str) -> NoReturn:
        """Refuse the options."""
        raise PlacementRequestError("sbatch", show(message))


def is_script(text: str) -> bool:
    """Return whether a text is a batch script."""
    return text.startswith("#!") and any(map(_DIRECTIVE.match, text.splitlines()))


def parse_script_options(text: str) -> list[str]:
    """Return the options of the #SBATCH lines; lines after the first command are ignored.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    options: list[str] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        if directive:
            options.extend(split_options(directive[1].partition(" #")[0]))
        elif line.strip() and not line.startswith("#"):
            break
    return options


def split_options(text: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlacementRequestError("sbatch", f"{error}: {show(text)}") from error


def parse_options(options: Sequence[str]) -> tuple[dict[str, Any], list[str], list[Note]]:
    """Return the spec of the request, the options without effect, and notes.

    A pod is a node's share of the job: a whole node if no GPUs, CPUs or memory are requested.

    Raises:
        PlacementRequestError: an option is malformed, or options contradict each other.
    """
    if len(options) > _MAX_WORDS:
        raise PlacementRequestError("sbatch", f"expected at most {_MAX_WORDS} words")
    notes: list[Note] = []
    parsed, ignored, parser = [], [], _build_parser()
    for words in _split_components(options):
        component_options, unknown = parser.parse_known_args(words)
        parsed.append(component_options)
        ignored.extend(unknown)
    groups = [_build_group(component, index, notes) for index, component in enumerate(parsed)]
    first = parsed[0]
    is_block = any(component.segment for component in parsed)
    spec: dict[str, Any] = {
        "preset": (Preset.SLURM_BLOCK if is_block else Preset.SLURM_TREE).value,
        "gang": first.job_name or "job",
        "groups": groups,
    }
    if first.priority:
        spec["priority"] = _parse_number("--priority", first.priority)
    limits = [component.switches for component in parsed if component.switches]
    if limits:
        spec["max_domains"] = {_LEAF: _parse_switches(limits[0], notes)}
    return spec, ignored + _find_ignored(parsed), notes


def _build_parser() -> _SbatchParser:
    parser = _SbatchParser(prog="sbatch", add_help=False, allow_abbrev=False)
    for name, short in (_TEXTS | IGNORABLE_OPTIONS | _COUNTS).items():
        names = [name, short] if short else [name]
        parser.add_argument(*names)
    for name in ("--spread-segments", "--consolidate-segments", "--exclusive"):
        parser.add_argument(name, nargs="?", const="yes")
    return parser


def _split_components(options: Sequence[str]) -> Iterator[list[str]]:
    """Yield the options of each component of a heterogeneous job."""
    words: list[str] = []
    for word in options:
        if word in _COMPONENT:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _find_ignored(parsed: Sequence[argparse.Namespace]) -> list[str]:
    """Return the known options that are set and do not affect placement."""
    names = [
        name
        for name in IGNORABLE_OPTIONS
        if any(vars(component)[_build_option_key(name)] for component in parsed)
    ]
    return [
        *names,
        *(["--exclusive"] if any(component.exclusive == "user" for component in parsed) else []),
    ]


def _build_option_key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _build_group(component: argparse.Namespace, index: int, notes: list[Note]) -> dict[str, Any]:
    min_nodes, count = _parse_node_range(component)
    row: dict[str, Any] = {"name": f"component-{index}" if index else "nodes", "count": count}
    if min_nodes < count:
        row["min"] = min_nodes
    row["request"] = _build_request(component, count, notes)
    if component.segment:
        layer: dict[str, Any] = {
            "size": _parse_number("--segment", component.segment, 1),
            "tier": _LEAF,
        }
        if component.spread_segments:
            layer["placement"] = "spread"
        elif component.consolidate_segments:
            layer["placement"] = "consolidate"
        row["slices"] = [layer]
    return row


def _parse_node_range(component: argparse.Namespace) -> tuple[int, int]:
    """Return the minimum and maximum number of nodes: as requested, else from the tasks."""
    tasks = _parse_number("--ntasks", component.ntasks or "1", 1)
    per_node = _parse_number("--ntasks-per-node", component.ntasks_per_node or "1", 1)
    if component.nodes is None:
        needed = -(-tasks // per_node)
        return needed, needed
    range_match = _RANGE.match(component.nodes)
    if range_match is None:
        raise _build_error("--nodes", component.nodes, "expected a number or a range such as 4-8")
    min_nodes = int(range_match[1]) * (1024 if range_match[2] else 1)
    max_nodes = (
        int(range_match[3]) * (1024 if range_match[4] else 1) if range_match[3] else min_nodes
    )
    if not 1 <= min_nodes <= max_nodes <= MAX_INTEGER:
        raise _build_error("--nodes", component.nodes, "expected a number or a range such as 4-8")
    return min_nodes, max_nodes


def _build_request(component: argparse.Namespace, count: int, notes: list[Note]) -> dict[str, int]:
    request: dict[str, int] = {}
    gpus = _count_gpus(component, count, notes)
    if gpus:
        request[GPU] = gpus
    if component.cpus_per_task:
        tasks = _count_tasks_per_node(component, count)
        request["cpu"] = tasks * _parse_number("--cpus-per-task", component.cpus_per_task, 1)
    if component.mem:
        size_match = _MEMORY.match(component.mem)
        if size_match is None:
            raise _build_error("--mem", component.mem, "expected a size such as 64G")
        request["memory"] = int(size_match[1]) * _IN_BYTES[size_match[2].upper()]
    is_whole = component.exclusive is not None and component.exclusive != "user"
    if is_whole or not any(request.values()):
        return dict(ONE_SLOT)
    return {name: quantity for name, quantity in request.items() if quantity}


def _count_tasks_per_node(component: argparse.Namespace, count: int) -> int:
    if component.ntasks_per_node:
        return _parse_number("--ntasks-per-node", component.ntasks_per_node, 1)
    return -(-_parse_number("--ntasks", component.ntasks, 1) // count) if component.ntasks else 1


def _count_gpus(component: argparse.Namespace, count: int, notes: list[Note]) -> int:
    """Return the number of GPUs on each node."""
    if component.gpus_per_node:
        return _parse_typed_count("--gpus-per-node", component.gpus_per_node, notes)
    if component.gpus_per_task:
        return _count_tasks_per_node(component, count) * _parse_typed_count(
            "--gpus-per-task", component.gpus_per_task, notes
        )
    if component.gpus:
        return -(-_parse_typed_count("--gpus", component.gpus, notes) // count)
    for part in (component.gres or "").split(","):
        name, _, rest = part.partition(":")
        if name == "gpu":
            return _parse_typed_count("--gres", rest or "1", notes)
        if part:
            notes.append(Note("--gres", f"{show(part)} is not understood"))
    return 0


def _parse_typed_count(name: str, text: str, notes: list[Note]) -> int:
    """Return the number of `8` or `h100:8`."""
    kind, _, number = text.rpartition(":")
    if kind:
        notes.append(Note(name, f"the type {show(kind)} is ignored"))
    return _parse_number(name, number)


def _parse_switches(text: str, notes: list[Note]) -> int:
    number, _, wait = text.partition("@")
    if wait:
        notes.append(Note("--switches", f"does not wait: {show(wait)} has no effect"))
    return _parse_number("--switches", number, 1)


def _parse_number(name: str, text: str, minimum: int = 0) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII) or not minimum <= int(text) <= MAX_INTEGER:
        raise _build_error(name, text, f"expected an integer from {minimum} to {MAX_INTEGER}")
    return int(text)


def _build_error(name: str, text: str, problem: str) -> PlacementRequestError:
    return PlacementRequestError(name, f"{problem}, got '{show(text)}'")
