"""Slurm's sbatch: its options, on a command line or as the #SBATCH lines of a script.

Source: the sbatch manual page of Slurm 25.11.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

from generator.manifests.fields import MOST, Note
from generator.manifests.resource_units import ONE_SLOT
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GPU: Final = "nvidia.com/gpu"
_LEAF: Final = "1"
_MOST_WORDS: Final = 2048
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
HARMLESS: Final = {
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


class _Parser(argparse.ArgumentParser):
    """A parser whose faults are errors of the request."""

    def error(self, message: str) -> NoReturn:
        """Refuse the options."""
        raise PlacementRequestError("sbatch", show(message))


def is_script(text: str) -> bool:
    """Return whether a text is a batch script."""
    return text.startswith("#!") and any(map(_DIRECTIVE.match, text.splitlines()))


def options_of_script(text: str) -> list[str]:
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


def read_options(options: Sequence[str]) -> tuple[dict[str, Any], list[str], list[Note]]:
    """Return the spec of the request, the options that had no effect, and remarks.

    A pod is a node's share of the job: without GPUs, CPUs or memory a whole node.

    Raises:
        PlacementRequestError: an option is malformed, or they contradict each other.
    """
    if len(options) > _MOST_WORDS:
        raise PlacementRequestError("sbatch", f"expected at most {_MOST_WORDS} words")
    notes: list[Note] = []
    parsed, ignored, parser = [], [], _parser()
    for words in _components(options):
        known, unknown = parser.parse_known_args(words)
        parsed.append(known)
        ignored.extend(unknown)
    groups = [_group(one, at, notes) for at, one in enumerate(parsed)]
    first = parsed[0]
    is_block = any(one.segment for one in parsed)
    spec: dict[str, Any] = {
        "preset": (Preset.SLURM_BLOCK if is_block else Preset.SLURM_TREE).value,
        "gang": first.job_name or "job",
        "groups": groups,
    }
    if first.priority:
        spec["priority"] = _number("--priority", first.priority)
    limits = [one.switches for one in parsed if one.switches]
    if limits:
        spec["max_domains"] = {_LEAF: _switches(limits[0], notes)}
    return spec, ignored + _given(parsed), notes


def _parser() -> _Parser:
    parser = _Parser(prog="sbatch", add_help=False, allow_abbrev=False)
    for name, short in (_TEXTS | HARMLESS | _COUNTS).items():
        names = [name, short] if short else [name]
        parser.add_argument(*names)
    for name in ("--spread-segments", "--consolidate-segments", "--exclusive"):
        parser.add_argument(name, nargs="?", const="yes")
    return parser


def _components(options: Sequence[str]) -> Iterator[list[str]]:
    """Yield the options of each component of a heterogeneous job."""
    words: list[str] = []
    for word in options:
        if word in _COMPONENT:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _given(parsed: Sequence[argparse.Namespace]) -> list[str]:
    """Return the known options that are given and say nothing of places."""
    names = [name for name in HARMLESS if any(vars(one)[_key(name)] for one in parsed)]
    return [*names, *(["--exclusive"] if any(one.exclusive == "user" for one in parsed) else [])]


def _key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _group(one: argparse.Namespace, at: int, notes: list[Note]) -> dict[str, Any]:
    least, count = _nodes(one)
    row: dict[str, Any] = {"name": f"component-{at}" if at else "nodes", "count": count}
    if least < count:
        row["min"] = least
    row["request"] = _request(one, count, notes)
    if one.segment:
        layer: dict[str, Any] = {"size": _number("--segment", one.segment, 1), "tier": _LEAF}
        if one.spread_segments:
            layer["placement"] = "spread"
        elif one.consolidate_segments:
            layer["placement"] = "consolidate"
        row["slices"] = [layer]
    return row


def _nodes(one: argparse.Namespace) -> tuple[int, int]:
    """Return least and most nodes: as asked for, else what the tasks need."""
    tasks = _number("--ntasks", one.ntasks or "1", 1)
    per_node = _number("--ntasks-per-node", one.ntasks_per_node or "1", 1)
    if one.nodes is None:
        needed = -(-tasks // per_node)
        return needed, needed
    found = _RANGE.match(one.nodes)
    if found is None:
        raise _fault("--nodes", one.nodes, "expected a number or a range such as 4-8")
    least = int(found[1]) * (1024 if found[2] else 1)
    most = int(found[3]) * (1024 if found[4] else 1) if found[3] else least
    if not 1 <= least <= most <= MOST:
        raise _fault("--nodes", one.nodes, "expected a number or a range such as 4-8")
    return least, most


def _request(one: argparse.Namespace, count: int, notes: list[Note]) -> dict[str, int]:
    found: dict[str, int] = {}
    gpus = _gpus(one, count, notes)
    if gpus:
        found[GPU] = gpus
    if one.cpus_per_task:
        tasks = _tasks_per_node(one, count)
        found["cpu"] = tasks * _number("--cpus-per-task", one.cpus_per_task, 1)
    if one.mem:
        size = _MEMORY.match(one.mem)
        if size is None:
            raise _fault("--mem", one.mem, "expected a size such as 64G")
        found["memory"] = int(size[1]) * _IN_BYTES[size[2].upper()]
    is_whole = one.exclusive is not None and one.exclusive != "user"
    if is_whole or not any(found.values()):
        return dict(ONE_SLOT)
    return {name: need for name, need in found.items() if need}


def _tasks_per_node(one: argparse.Namespace, count: int) -> int:
    if one.ntasks_per_node:
        return _number("--ntasks-per-node", one.ntasks_per_node, 1)
    return -(-_number("--ntasks", one.ntasks, 1) // count) if one.ntasks else 1


def _gpus(one: argparse.Namespace, count: int, notes: list[Note]) -> int:
    """Return GPUs on each node."""
    if one.gpus_per_node:
        return _typed("--gpus-per-node", one.gpus_per_node, notes)
    if one.gpus_per_task:
        return _tasks_per_node(one, count) * _typed("--gpus-per-task", one.gpus_per_task, notes)
    if one.gpus:
        return -(-_typed("--gpus", one.gpus, notes) // count)
    for part in (one.gres or "").split(","):
        name, _, rest = part.partition(":")
        if name == "gpu":
            return _typed("--gres", rest or "1", notes)
        if part:
            notes.append(Note("--gres", f"{show(part)} is not understood"))
    return 0


def _typed(name: str, text: str, notes: list[Note]) -> int:
    """Return the number of `8` or `h100:8`."""
    kind, _, number = text.rpartition(":")
    if kind:
        notes.append(Note(name, f"the type {show(kind)} is not looked at"))
    return _number(name, number)


def _switches(text: str, notes: list[Note]) -> int:
    number, _, wait = text.partition("@")
    if wait:
        notes.append(Note("--switches", f"does not wait: {show(wait)} has no effect"))
    return _number("--switches", number, 1)


def _number(name: str, text: str, least: int = 0) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII) or not least <= int(text) <= MOST:
        raise _fault(name, text, f"expected an integer from {least} to {MOST}")
    return int(text)


def _fault(name: str, text: str, problem: str) -> PlacementRequestError:
    return PlacementRequestError(name, f"{problem}, got '{show(text)}'")
