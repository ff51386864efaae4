"""Translates sbatch of Slurm: options of a command line, or #SBATCH lines of a script.

Source: the sbatch manual page of Slurm 25.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from generator.manifests.fields import MAX_INTEGER, Note
from generator.manifests.ignored_fields import IgnoredField, Relevance
from generator.manifests.resource_units import ONE_SLOT
from generator.manifests.sbatch_options import (
    YES,
    Component,
    build_error,
    build_parser,
    parse_number,
    split_components,
    split_script,
)
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GPU: Final = "nvidia.com/gpu"
_LEAF: Final = "1"
_MAX_WORDS: Final = 2048
"""argparse takes time quadratic in their number."""
_RANGE = re.compile(r"([0-9]{1,7})(k?)(?:-([0-9]{1,7})(k?))?\Z")
_MEMORY = re.compile(r"([0-9]{1,12})([KMGT]?)B?\Z", re.IGNORECASE)
_IN_BYTES: Final = {"K": 1 << 10, "": 1 << 20, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""Memory without a unit is in MiB."""


class SbatchRequest(NamedTuple):
    """The meaning of options."""

    spec: dict[str, Any]
    ignored: tuple[IgnoredField, ...]
    """Options without effect, in their order."""
    notes: tuple[Note, ...]


def parse_options(options: Sequence[str]) -> SbatchRequest:
    """Return the spec of the request, the options without effect, and notes.

    A pod is a node's share of the job: a whole node if no GPUs, CPUs or memory are requested.

    Raises:
        PlacementRequestError: an option is malformed, or options contradict each other.
    """
    if len(options) > _MAX_WORDS:
        raise PlacementRequestError("sbatch", f"expected at most {_MAX_WORDS} words")
    notes: list[Note] = []
    components: list[Component] = []
    unknown: list[IgnoredField] = []
    parser = build_parser()
    for words in split_components(options):
        own, script = split_script(words)
        values, extra = parser.parse_known_args(own)
        components.append(Component(values, notes))
        unknown += (IgnoredField(show(word), Relevance.POSSIBLE) for word in extra)
        unknown += (IgnoredField(show(word), Relevance.NONE) for word in script)
    spec = _build_spec(components)
    ignored = [row for component in components for row in component.find_ignored()]
    return SbatchRequest(spec, tuple(_merge_rows([*ignored, *unknown])), tuple(notes))


def _build_spec(components: Sequence[Component]) -> dict[str, Any]:
    first = components[0]
    is_block = any(component.peek("--segment") for component in components)
    groups = [_build_group(component, index) for index, component in enumerate(components)]
    spec: dict[str, Any] = {
        "preset": (Preset.SLURM_BLOCK if is_block else Preset.SLURM_TREE).value,
        "gang": first.take("--job-name") or "job",
        "groups": groups,
    }
    priority = first.take_number("--priority")
    if priority is not None:
        spec["priority"] = priority
    limited = next((one for one in components if one.peek("--switches")), None)
    if limited is not None:
        spec["max_domains"] = {_LEAF: _parse_switches(limited)}
    return spec


def _merge_rows(rows: Iterable[IgnoredField]) -> Iterator[IgnoredField]:
    """Yield each row once; those that may matter come first."""
    ordered = sorted(dict.fromkeys(rows), key=lambda row: row.relevance is Relevance.NONE)
    yield from ordered


def _build_group(component: Component, index: int) -> dict[str, Any]:
    min_nodes, count = _parse_node_range(component)
    row: dict[str, Any] = {"name": f"component-{index}" if index else "nodes", "count": count}
    if min_nodes < count:
        row["min"] = min_nodes
    row["request"] = _build_request(component, count)
    size = component.take_number("--segment", 1)
    if size is not None:
        layer: dict[str, Any] = {"size": size, "tier": _LEAF}
        if component.take("--spread-segments"):
            layer["placement"] = "spread"
        elif component.take("--consolidate-segments"):
            layer["placement"] = "consolidate"
        row["slices"] = [layer]
    return row


def _parse_node_range(component: Component) -> tuple[int, int]:
    """Return the minimum and maximum number of nodes: as requested, else from the tasks."""
    text = component.take("--nodes")
    tasks = parse_number("--ntasks", component.peek("--ntasks") or "1", 1)
    per_node = parse_number("--ntasks-per-node", component.peek("--ntasks-per-node") or "1", 1)
    if text is None:
        component.take("--ntasks")
        needed = -(-tasks // per_node)
        if tasks > 1:
            component.take("--ntasks-per-node")
        return needed, needed
    range_match = _RANGE.match(text)
    if range_match is None:
        raise build_error("--nodes", text, "expected a number or a range such as 4-8")
    min_nodes = int(range_match[1]) * (1024 if range_match[2] else 1)
    max_nodes = (
        int(range_match[3]) * (1024 if range_match[4] else 1) if range_match[3] else min_nodes
    )
    if not 1 <= min_nodes <= max_nodes <= MAX_INTEGER:
        raise build_error("--nodes", text, "expected a number or a range such as 4-8")
    return min_nodes, max_nodes


def _build_request(component: Component, count: int) -> dict[str, int]:
    """Return the resources of a node's share of the job."""
    request: dict[str, int] = {}
    gpus = _count_gpus(component, count)
    if gpus:
        request[GPU] = gpus
    cpus = component.take_number("--cpus-per-task", 1)
    if cpus is not None:
        request["cpu"] = _count_tasks_per_node(component, count) * cpus
    memory = _parse_memory(component)
    if memory:
        request["memory"] = memory
    if component.peek("--exclusive") == YES:
        component.take("--exclusive")
        if request:
            component.notes.append(Note("--exclusive", "a whole node, whatever it has"))
        return dict(ONE_SLOT)
    return request or dict(ONE_SLOT)


def _parse_memory(component: Component) -> int:
    text = component.take("--mem")
    if text is None:
        return 0
    size_match = _MEMORY.match(text)
    if size_match is None:
        raise build_error("--mem", text, "expected a size such as 64G")
    size = int(size_match[1]) * _IN_BYTES[size_match[2].upper()]
    if not size:
        component.notes.append(Note("--mem", "all memory of a node is not checked"))
    return size


def _count_tasks_per_node(component: Component, count: int) -> int:
    per_node = component.take_number("--ntasks-per-node", 1)
    if per_node is not None:
        return per_node
    tasks = component.take_number("--ntasks", 1)
    return 1 if tasks is None else -(-tasks // count)


def _count_gpus(component: Component, count: int) -> int:
    """Return the number of GPUs on each node, from the first option that gives it."""
    if component.peek("--gpus-per-node") is not None:
        return _parse_typed_count(component, "--gpus-per-node")
    if component.peek("--gpus-per-task") is not None:
        per_task = _parse_typed_count(component, "--gpus-per-task")
        return _count_tasks_per_node(component, count) * per_task
    if component.peek("--gpus") is not None:
        return -(-_parse_typed_count(component, "--gpus") // count)
    gpus = 0
    for part in (component.take("--gres") or "").split(","):
        name, _, rest = part.partition(":")
        if name == "gpu" and not gpus:
            gpus = _parse_typed_count(component, "--gres", rest or "1")
        elif part:
            component.ignore(f"--gres={part}")
    return gpus


def _parse_typed_count(component: Component, name: str, text: str | None = None) -> int:
    """Return the number of `8` or `h100:8`; the type is ignored."""
    value = text if text is not None else component.take(name)
    kind, _, number = (value or "").rpartition(":")
    if kind:
        component.ignore(f"{name}: the type {kind}")
    return parse_number(name, number)


def _parse_switches(component: Component) -> int:
    number, _, wait = (component.take("--switches") or "").partition("@")
    if wait:
        text = f"does not wait: {show(wait)} has no effect"
        component.notes.append(Note("--switches", text))
    return parse_number("--switches", number, 1)
