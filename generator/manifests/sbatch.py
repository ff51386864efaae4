"""Slurm's sbatch: its options, on a command line or as the #SBATCH lines of a script.

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
"""argparse takes time by the square of their number."""
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
    """A parser whose faults are errors of the request."""

    def error(self, message: str) -> NoReturn:
        """Refuse the options."""
        raise PlacementRequestError("sbatch", show(message))


def is_script(text: str) -> bool:
    """Return whether a text is a batch script."""
    return text.startswith("#!") and any(map(_DIRECTIVE.match, text.splitlines()))


def parse_script_options(text: str) -> list[str]:
    """Return the options of the #SBATCH lines; those after the first command do not count.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    found: list[str] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        if directive:
            found.extend(split_options(directive[1].partition(" #")[0]))
        elif line.strip() and not line.startswith("#"):
            break
    return found


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
    """Return the spec of the request, the options that had no effect, and remarks.

    A pod is a node's share of the job: without GPUs, CPUs or memory a whole node.

    Raises:
        PlacementRequestError: an option is malformed, or they contradict each other.
    """
    if len(options) > _MAX_WORDS:
        raise PlacementRequestError("sbatch", f"expected at most {_MAX_WORDS} words")
    notes: list[Note] = []
    parsed, ignored, parser = [], [], _build_parser()
    for words in _split_components(options):
        known, unknown = parser.parse_known_args(words)
        parsed.append(known)
        ignored.extend(unknown)
    groups = [_build_group(one, at, notes) for at, one in enumerate(parsed)]
    first = parsed[0]
    is_block = any(one.segment for one in parsed)
    spec: dict[str, Any] = {
        "preset": (Preset.SLURM_BLOCK if is_block else Preset.SLURM_TREE).value,
        "gang": first.job_name or "job",
        "groups": groups,
    }
    if first.priority:
        spec["priority"] = _parse_number("--priority", first.priority)
    limits = [one.switches for one in parsed if one.switches]
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
    """Return the known options that are given and say nothing of places."""
    names = [
        name
        for name in IGNORABLE_OPTIONS
        if any(vars(one)[_build_option_key(name)] for one in parsed)
    ]
    return [*names, *(["--exclusive"] if any(one.exclusive == "user" for one in parsed) else [])]


def _build_option_key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _build_group(one: argparse.Namespace, at: int, notes: list[Note]) -> dict[str, Any]:
    least, count = _parse_node_range(one)
    row: dict[str, Any] = {"name": f"component-{at}" if at else "nodes", "count": count}
    if least < count:
        row["min"] = least
    row["request"] = _build_request(one, count, notes)
    if one.segment:
        layer: dict[str, Any] = {"size": _parse_number("--segment", one.segment, 1), "tier": _LEAF}
        if one.spread_segments:
            layer["placement"] = "spread"
        elif one.consolidate_segments:
            layer["placement"] = "consolidate"
        row["slices"] = [layer]
    return row


def _parse_node_range(one: argparse.Namespace) -> tuple[int, int]:
    """Return least and most nodes: as asked for, else what the tasks need."""
    tasks = _parse_number("--ntasks", one.ntasks or "1", 1)
    per_node = _parse_number("--ntasks-per-node", one.ntasks_per_node or "1", 1)
    if one.nodes is None:
        needed = -(-tasks // per_node)
        return needed, needed
    found = _RANGE.match(one.nodes)
    if found is None:
        raise _build_error("--nodes", one.nodes, "expected a number or a range such as 4-8")
    least = int(found[1]) * (1024 if found[2] else 1)
    most = int(found[3]) * (1024 if found[4] else 1) if found[3] else least
    if not 1 <= least <= most <= MAX_INTEGER:
        raise _build_error("--nodes", one.nodes, "expected a number or a range such as 4-8")
    return least, most


def _build_request(one: argparse.Namespace, count: int, notes: list[Note]) -> dict[str, int]:
    found: dict[str, int] = {}
    gpus = _count_gpus(one, count, notes)
    if gpus:
        found[GPU] = gpus
    if one.cpus_per_task:
        tasks = _count_tasks_per_node(one, count)
        found["cpu"] = tasks * _parse_number("--cpus-per-task", one.cpus_per_task, 1)
    if one.mem:
        size = _MEMORY.match(one.mem)
        if size is None:
            raise _build_error("--mem", one.mem, "expected a size such as 64G")
        found["memory"] = int(size[1]) * _IN_BYTES[size[2].upper()]
    is_whole = one.exclusive is not None and one.exclusive != "user"
    if is_whole or not any(found.values()):
        return dict(ONE_SLOT)
    return {name: need for name, need in found.items() if need}


def _count_tasks_per_node(one: argparse.Namespace, count: int) -> int:
    if one.ntasks_per_node:
        return _parse_number("--ntasks-per-node", one.ntasks_per_node, 1)
    return -(-_parse_number("--ntasks", one.ntasks, 1) // count) if one.ntasks else 1


def _count_gpus(one: argparse.Namespace, count: int, notes: list[Note]) -> int:
    """Return GPUs on each node."""
    if one.gpus_per_node:
        return _parse_typed_count("--gpus-per-node", one.gpus_per_node, notes)
    if one.gpus_per_task:
        return _count_tasks_per_node(one, count) * _parse_typed_count(
            "--gpus-per-task", one.gpus_per_task, notes
        )
    if one.gpus:
        return -(-_parse_typed_count("--gpus", one.gpus, notes) // count)
    for part in (one.gres or "").split(","):
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
        notes.append(Note(name, f"the type {show(kind)} is not looked at"))
    return _parse_number(name, number)


def _parse_switches(text: str, notes: list[Note]) -> int:
    number, _, wait = text.partition("@")
    if wait:
        notes.append(Note("--switches", f"does not wait: {show(wait)} has no effect"))
    return _parse_number("--switches", number, 1)


def _parse_number(name: str, text: str, least: int = 0) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII) or not least <= int(text) <= MAX_INTEGER:
        raise _build_error(name, text, f"expected an integer from {least} to {MAX_INTEGER}")
    return int(text)


def _build_error(name: str, text: str, problem: str) -> PlacementRequestError:
    return PlacementRequestError(name, f"{problem}, got '{show(text)}'")
