"""A job of sbatch: its components, and the placement request that they become on given nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.manifests.fields import IgnoredField, Note, Relevance
from generator.manifests.slurm.command_line import (
    GivenOptions,
    correct_options,
    parse_command_line,
    parse_environment,
    parse_options,
    parse_script,
)
from generator.manifests.slurm.component import Component, build_error, parse_number
from generator.manifests.slurm.component_groups import (
    NODE_TIER,
    ComponentSize,
    ComponentSizer,
    GroupRow,
)
from generator.manifests.slurm.demand import Demand, NodeMask, resolve_demand
from generator.manifests.slurm.loads import SLOTS, NodeCapacity
from generator.manifests.slurm.options import OPTIONS
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, list_some, show
from topology.model.ids import natural_key
from topology.model.name_ranges import expand_names

ReadText = Callable[[str], str | None]
"""Returns the text of a file that an option names; None if it cannot be read."""
LEAF: Final = "1"
MAX_LISTED: Final = 100_000
_TASKS_OF_NODE: Final = re.compile(r"\*[0-9]+(?=,|\Z)", re.ASCII)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class _Part(NamedTuple):
    """One component, and the slice layer of its segments."""

    demand: Demand
    segment: GroupRow | None


class SizedJob(NamedTuple):
    """A job as a placement request on given nodes."""

    spec: dict[str, Any]
    ignored: tuple[IgnoredField, ...]
    """Options that the request does not express."""
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job before it is fitted to nodes."""

    parts: tuple[_Part, ...]
    spec: dict[str, Any]
    """The fields of the request beside its groups."""
    ignored: tuple[IgnoredField, ...]
    """Options without effect; those that may matter come first."""
    notes: tuple[Note, ...]

    def size(self, capacity: NodeCapacity | None = None) -> SizedJob:
        """Return the placement request of the job; None: for unknown nodes.

        Raises:
            PlacementRequestError: the job names a node that does not exist.
        """
        notes: list[Note] = []
        sizes = [
            ComponentSizer(
                replace(part.demand, mask=_match_names(part.demand.mask, capacity, notes)),
                f"component-{index}" if index else "nodes",
                capacity,
                part.segment,
            ).size()
            for index, part in enumerate(self.parts)
        ]
        for index, size in enumerate(sizes):
            notes += _explain_size(size, f"groups[{index}]")
        spec = {**self.spec, "groups": _join_components([size.groups for size in sizes], capacity)}
        if len(sizes) == 1 and sizes[0].most_nodes is not None:
            limits = {**self.spec.get("max_domains", {}), NODE_TIER: sizes[0].most_nodes}
            spec["max_domains"] = limits
        names = dict.fromkeys(name for size in sizes for name in size.unchecked)
        unchecked = [IgnoredField(name, Relevance.POSSIBLE) for name in names]
        return SizedJob(spec, tuple(unchecked), tuple(notes))


def parse_batch_job(
    words: Sequence[str],
    script: str | None = None,
    *,
    environment: Mapping[str, str] = _NOTHING,
    read_text: ReadText = lambda _: None,
) -> BatchJob:
    """Return the job of a command line, of a script, or of both.

    The command line comes before environment variables, and these before the lines of the script.

    Args:
        words: the command line without `sbatch`.
        script: text of the script; None if the command line may name one.
        environment: variables of the shell.
        read_text: reads the script and the lists of nodes that options name.

    Raises:
        PlacementRequestError: an option is malformed, or options contradict each other.
    """
    typed = parse_command_line(words)
    notes: list[Note] = []
    ignored = [row for given in typed for row in _find_unknown(given)]
    if script is None and typed[-1].script:
        script = read_text(typed[-1].script[0])
        ignored += _report_script(typed[-1].script, is_read=script is not None)
    written: list[GivenOptions] = []
    if script is not None:
        lines = parse_script(script)
        written = [_parse_directives(component) for component in lines.components]
        notes += lines.notes
        ignored += [IgnoredField(show(line), Relevance.POSSIBLE) for line in lines.foreign]
        ignored += [row for given in written for row in _find_unknown(given)]
    of_shell = parse_environment(environment)
    components = list(_merge_components(written, of_shell, typed, notes))
    parts, spec = [], _build_spec(components)
    for component in components:
        demand = resolve_demand(component, _read_mask(component, read_text))
        parts.append(_Part(demand, _take_segment(component)))
    spec |= _find_gang_rules(components, parts)
    ignored += [row for component in components for row in component.find_ignored()]
    return BatchJob(tuple(parts), spec, tuple(_merge_rows(ignored)), tuple(notes))


def _parse_directives(words: Sequence[str]) -> GivenOptions:
    given = parse_options(words)
    if given.script:
        raise PlacementRequestError(
            "sbatch", f"expected an option in an #SBATCH line, got '{show(given.script[0])}'"
        )
    return given


def _find_unknown(given: GivenOptions) -> Iterator[IgnoredField]:
    for word in given.unknown:
        yield IgnoredField(show(word), Relevance.POSSIBLE)


def _report_script(words: Sequence[str], *, is_read: bool) -> Iterator[IgnoredField]:
    """Yield the script, if it cannot be read, and its arguments.

    Raises:
        PlacementRequestError: the script cannot be read, and is an option without its dashes.
    """
    name, *arguments = words
    meant = [] if is_read else correct_options(words)
    if meant:
        shown = " ".join(map(show, meant))
        raise PlacementRequestError(
            "sbatch", f"'{show(name)}' is no option: options begin with dashes, such as {shown}"
        )
    if not is_read:
        yield IgnoredField(f"{show(name)}: its #SBATCH lines", Relevance.POSSIBLE)
    for word in arguments:
        yield IgnoredField(show(word), Relevance.NONE)


def _merge_components(
    written: Sequence[GivenOptions],
    of_shell: Mapping[str, str],
    typed: Sequence[GivenOptions],
    notes: list[Note],
) -> Iterator[Component]:
    """Yield the components; the last one of the command line also counts for all later ones."""
    if of_shell:
        names = ", ".join(OPTIONS[name].variable for name in of_shell)
        notes.append(Note("environment", f"as sbatch reads it: {names}"))
    inherited: dict[str, str] = {}
    for ours, theirs in zip_longest(written, typed):
        typed_values = (typed[-1] if theirs is None else theirs).values
        written_values = {} if ours is None else ours.values
        values = {**inherited, **written_values, **of_shell, **typed_values}
        inherited = {name: text for name, text in values.items() if OPTIONS[name].is_inherited}
        of_environment = frozenset(of_shell) - typed_values.keys()
        yield Component(values, notes, of_environment=of_environment)


def _read_mask(component: Component, read_text: ReadText) -> NodeMask:
    """Return the nodes that options list and exclude."""
    listed = component.take("--nodelist")
    file = component.take("--nodefile")
    names = _read_names(component, "--nodelist", listed, read_text, is_file="/" in (listed or ""))
    if file is not None:
        names = _read_names(component, "--nodefile", file, read_text, is_file=True)
        if listed is not None:
            component.ignore(f"--nodelist={listed}: --nodefile is given", Relevance.NONE)
    excluded = component.take("--exclude")
    is_file = "/" in (excluded or "")
    return NodeMask(
        tuple(sorted(names, key=natural_key)),
        _read_names(component, "--exclude", excluded, read_text, is_file=is_file),
    )


def _read_names(
    component: Component, name: str, value: str | None, read_text: ReadText, *, is_file: bool
) -> tuple[str, ...]:
    """Return the names of a list of nodes, or of a file of such lists, each once."""
    if value is None:
        return ()
    text = read_text(value) if is_file else value
    if text is None:
        component.ignore(f"{name}={value}: the file cannot be read")
        return ()
    names: dict[str, None] = {}
    for line in text.splitlines():
        for word in line.partition("#")[0].split():
            try:
                found = expand_names(_TASKS_OF_NODE.sub("", word), limit=MAX_LISTED)
            except ValueError as error:
                raise build_error(name, word, f"expected names such as n[1-4,7]: {error}") from None
            names.update(dict.fromkeys(found))
    return tuple(names)


def _build_spec(components: Sequence[Component]) -> dict[str, Any]:
    first = components[0]
    is_block = any(component.has("--segment") for component in components)
    spec: dict[str, Any] = {
        "preset": (Preset.SLURM_BLOCK if is_block else Preset.SLURM_TREE).value,
        "gang": first.take("--job-name") or "job",
    }
    priority = first.take("--priority")
    if priority is not None and priority.upper() == "TOP":
        first.ignore("--priority=TOP")
    elif priority is not None:
        spec["priority"] = parse_number("--priority", priority, 0)
    if tasks := first.take("--array"):
        first.note("--array", f"one of the tasks {show(tasks)}; each is a job of its own")
    for later in components[1:]:
        for name in ("--job-name", "--priority", "--array"):
            later.take(name)
    return spec


def _find_gang_rules(components: Sequence[Component], parts: Sequence[_Part]) -> dict[str, Any]:
    """Return the rules of a request on all components together."""
    rules: dict[str, Any] = {}
    limits = [_take_switches(component) for component in components if component.has("--switches")]
    if limits:
        rules["max_domains"] = {LEAF: max(limits)}
    if any(part.demand.is_exclusive for part in parts):
        rules["exclusive"] = NODE_TIER
    return rules


def name_options(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the options behind the fields of a request that bound its domains."""
    limits = [
        f"--switches={most}" if tier == LEAF else "--nodes"
        for tier, most in spec.get("max_domains", {}).items()
    ]
    names = {"max_domains": " and ".join(limits)} if limits else {}
    return names | ({"exclusive": "--exclusive"} if "exclusive" in spec else {})


def _take_switches(component: Component) -> int:
    number, _, wait = (component.take("--switches") or "").partition("@")
    until = show(wait) if wait else "max_switch_wait of Slurm, 5 minutes by default"
    component.note("--switches", f"a bound; sbatch drops it after {until}")
    return parse_number("--switches", number)


def _take_segment(component: Component) -> GroupRow | None:
    size = component.take_number("--segment")
    if size is None:
        return None
    layer: GroupRow = {"size": size, "tier": LEAF}
    if component.take_flag("--spread-segments"):
        layer["placement"] = "spread"
    elif component.take_flag("--consolidate-segments"):
        layer["placement"] = "consolidate"
    return layer


def _merge_rows(rows: Iterable[IgnoredField]) -> Iterator[IgnoredField]:
    """Yield each row once; those that may matter come first."""
    yield from sorted(dict.fromkeys(rows), key=lambda row: row.relevance is Relevance.NONE)


def _match_names(mask: NodeMask, capacity: NodeCapacity | None, notes: list[Note]) -> NodeMask:
    """Return a mask with the names of nodes. A name without a domain may be the first label.

    Raises:
        PlacementRequestError: a listed node does not exist.
    """
    if capacity is None or not (mask.listed or mask.excluded):
        return mask
    by_name: dict[str, str] = {}
    for name in capacity.names:
        by_name.setdefault(name.partition(".")[0], name)
    by_name |= {name: name for name in capacity.names}
    missing = [name for name in mask.listed if name not in by_name]
    if missing:
        raise PlacementRequestError("--nodelist", f"no node is named {list_some(missing, 3)}")
    unknown = [name for name in mask.excluded if name not in by_name]
    if unknown:
        notes.append(Note("--exclude", f"no node is named {list_some(unknown, 3)}"))
    return NodeMask(
        tuple(by_name[name] for name in mask.listed),
        tuple(by_name[name] for name in mask.excluded if name in by_name),
    )


def _join_components(
    components: Sequence[list[GroupRow]], capacity: NodeCapacity | None
) -> list[GroupRow]:
    """Return the groups of all components, which share no node.

    Where each node has one slot, and each pod is a node, pods that take the slot share none.
    """
    if len(components) == 1:
        return components[0]
    rows = [row for groups in components for row in groups]
    if capacity is not None and capacity.slots == (1, 1) and all(map(_is_node, rows)):
        return [row | {"request": row["request"] | {SLOTS: 1}} for row in rows]
    joined: list[GroupRow] = []
    for groups in components:
        if len(groups) == 1:
            joined.append(groups[0] | {"exclusive": NODE_TIER})
        else:
            name = f"all-of-{groups[0]['name']}"
            joined.append({"name": name, "exclusive": NODE_TIER, "children": groups})
    return joined


def _is_node(row: GroupRow) -> bool:
    return "count" in row and (row["count"] == 1 or row.get("max_per_node") == 1)


def _explain_size(size: ComponentSize, path: str) -> Iterator[Note]:
    if size.units:
        pods = " or ".join(f"one of {unit.num_pods} {unit.name}s" for unit in size.units)
        text = f"a pod is {pods}, and nodes take as many as they hold"
        if size.of_each_node:
            rows = (f"{quantity} of {name}" for name, quantity in size.of_each_node.items())
            text += f"; each node has at least {', '.join(rows)}"
        yield Note(path, text)
    if size.unlisted:
        names = " or ".join(dict.fromkeys(size.unlisted))
        yield Note(path, f"no node lists {names}: not checked")
