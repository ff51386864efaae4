"""The options of one component of a job, and the forms of their values.

A component records which options are read; all others are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from generator.manifests.fields import MAX_INTEGER, IgnoredField, Note, Relevance
from generator.manifests.slurm.command_line import YES
from generator.manifests.slurm.options import OPTIONS, Effect, is_harmless
from topology.model.errors import PlacementRequestError, show

_SIZE: Final = re.compile(r"([0-9]{1,12})([KMGT]?)B?\Z", re.IGNORECASE | re.ASCII)
_MIB: Final = 1 << 20
_IN_KIB: Final = {"K": 1, "": 1 << 10, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}
"""Memory without a unit is in MiB."""
_NODES: Final = re.compile(r"([0-9]{1,7})([km]?)(?:-([0-9]{1,7})([km]?))?\Z", re.IGNORECASE)
_CHOICE: Final = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?\Z", re.ASCII)
_MULTIPLES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20}
_GPU: Final = "gpu"
_TRES: Final = re.compile(r"(?:(cpu)|gres[/:]gpu)[:=](.+)\Z")


class Component:
    """The options of one component of a job."""

    def __init__(
        self, values: Mapping[str, str], notes: list[Note], *, of_environment: frozenset[str]
    ) -> None:
        """Store the options.

        Args:
            values: the values of the options, by name.
            notes: the notes of the whole job; the list grows as options are read.
            of_environment: names of the options that environment variables set.
        """
        self.values = dict(values)
        self.notes = notes
        self.of_environment = of_environment
        self._taken: set[str] = set()
        self._parts: list[IgnoredField] = []

    def has(self, name: str) -> bool:
        """Return whether an option is given."""
        return name in self.values

    def take(self, name: str) -> str | None:
        """Return the value of an option and mark it as read."""
        self._taken.add(name)
        return self.values.get(name)

    def take_number(self, name: str, minimum: int = 1) -> int | None:
        """Return the value of an option as a number; None if it is not given."""
        text = self.take(name)
        return None if text is None else parse_number(name, text, minimum)

    def take_flag(self, name: str) -> bool:
        """Return whether an option without a value is given."""
        return self.take(name) is not None

    def note(self, name: str, text: str) -> None:
        """Add a note on an option for the user."""
        self.notes.append(Note(name, text))

    def ignore(self, part: str, relevance: Relevance = Relevance.POSSIBLE) -> None:
        """Report a part of an option that is read."""
        self._parts.append(IgnoredField(show(part), relevance))

    def refuse_together(self, *names: str) -> None:
        """Refuse options that exclude each other; those of the environment give way to others.

        Raises:
            PlacementRequestError: several of them are given in one place.
        """
        given = [name for name in names if self.has(name)]
        typed = [name for name in given if name not in self.of_environment]
        if len(typed or given) > 1:
            others = ", ".join(typed[1:] or given[1:])
            raise PlacementRequestError((typed or given)[0], f"not allowed with {others}")
        for name in given:
            if typed and name not in typed:
                self.take(name)
                del self.values[name]
                self.ignore(f"{OPTIONS[name].variable}: {typed[0]} is given", Relevance.NONE)

    def find_ignored(self) -> Iterator[IgnoredField]:
        """Yield the options that have no effect, and those that may matter."""
        for name, value in self.values.items():
            option = OPTIONS[name]
            if name in self._taken:
                continue
            reason = "" if option.effect is Effect.READ else option.why
            if option.effect is Effect.NONE:
                yield IgnoredField(name, Relevance.NONE, reason=reason)
            elif is_harmless(option, value):
                yield IgnoredField(name, Relevance.NONE)
            else:
                shown = name if value == YES else f"{name}={value}"
                yield IgnoredField(show(shown), Relevance.POSSIBLE, reason=reason)
        yield from self._parts


class NodeCount(NamedTuple):
    """How many nodes a job may have."""

    least: int
    most: int | None = None
    """None: any number."""
    choices: tuple[int, ...] = ()
    """The only numbers, if there are gaps between them; in order."""

    @property
    def exact(self) -> int | None:
        """The only number of nodes; None if there are several."""
        return self.least if self.least == self.most else None

    def at_least(self, limit: int) -> NodeCount:
        """Return the count with a lower limit; the limit must not exceed the maximum."""
        kept = tuple(number for number in self.choices if number >= limit)
        return NodeCount(kept[0] if kept else max(self.least, limit), self.most, kept)

    def at_most(self, limit: int) -> NodeCount:
        """Return the count with an upper limit; the limit must not be below the minimum."""
        kept = tuple(number for number in self.choices if number <= limit)
        most = limit if self.most is None else min(self.most, limit)
        return NodeCount(self.least, kept[-1] if kept else most, kept)


class MemoryBasis(StrEnum):
    """What an amount of memory is for."""

    NODE = "--mem"
    CPU = "--mem-per-cpu"
    GPU = "--mem-per-gpu"


class Memory(NamedTuple):
    """An amount of memory."""

    num_bytes: int
    basis: MemoryBasis


def parse_number(name: str, text: str, minimum: int = 1) -> int:
    """Return the value of an option as a number.

    Raises:
        PlacementRequestError: it is no number from `minimum` to a million.
    """
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII) or not minimum <= int(text) <= MAX_INTEGER:
        raise build_error(name, text, f"expected an integer from {minimum} to {MAX_INTEGER}")
    return int(text)


def parse_node_count(name: str, text: str) -> NodeCount:
    """Return a number of nodes, a range, or a list of them with steps: `4`, `4-8`, `4,8`, `1-9:4`.

    Raises:
        PlacementRequestError: it is none of these.
    """
    problem = build_error(name, text, "expected a number or a range such as 4-8")
    if "," in text or ":" in text:
        numbers = sorted({number for part in text.split(",") for number in _expand(part, problem)})
        least, most = numbers[0], numbers[-1]
        has_gaps = len(numbers) <= most - least
        count = NodeCount(least, most, tuple(numbers) if has_gaps else ())
    else:
        row = _NODES.match(text)
        if row is None:
            raise problem
        least = int(row[1]) * _MULTIPLES[row[2].lower()]
        most = int(row[3]) * _MULTIPLES[row[4].lower()] if row[3] else least
        count = NodeCount(least, most)
    if not 1 <= least <= most <= MAX_INTEGER:
        raise problem
    return count


def _expand(text: str, problem: PlacementRequestError) -> range:
    row = _CHOICE.match(text)
    if row is None or int(row[2] or row[1]) > MAX_INTEGER:
        raise problem
    numbers = range(int(row[1]), int(row[2] or row[1]) + 1, int(row[3] or 1) or MAX_INTEGER)
    if not numbers:
        raise problem
    return numbers


def take_memory(component: Component) -> Memory | None:
    """Return the memory of a component; None if it asks for none.

    Raises:
        PlacementRequestError: it is no size, or several options give it.
    """
    component.refuse_together(*MemoryBasis)
    for basis in MemoryBasis:
        text = component.take(basis)
        if text is None:
            continue
        row = _SIZE.match(text)
        if row is None:
            raise build_error(basis, text, "expected a size such as 64G")
        num_mib = -(-int(row[1]) * _IN_KIB[row[2].upper()] // 1024)
        if num_mib:
            return Memory(num_mib * _MIB, basis)
        component.note(basis, "all memory of a node, whatever it has")
    return None


def take_gpus(component: Component, name: str) -> int | None:
    """Return the GPUs of `8`, `h100:8` or `h100:4,a100:4`; types are reported, not read."""
    text = component.take(name)
    if text is None:
        return None
    return sum(_count_typed(component, name, part.split(":")) for part in text.split(","))


def take_gres(component: Component) -> int | None:
    """Return the GPUs of `--gres`: `gpu`, `gpu:2`, `gpu:h100` or `gpu:h100:2`; None without any."""
    counts = []
    for part in (component.take("--gres") or "").split(","):
        name, *rest = re.split("[:=]", part.removeprefix("gres/").removeprefix("gres:"))
        if name == _GPU:
            counts.append(_count_typed(component, "--gres", rest or ["1"]))
        elif part.lower() not in ("", "none"):
            component.ignore(f"--gres={part}")
    return sum(counts) if counts else None


def take_tres_per_task(component: Component) -> dict[str, int]:
    """Return the CPUs and GPUs of a task that `--tres-per-task` gives, by `cpu` and `gpu`."""
    found: dict[str, int] = {}
    for part in filter(None, (component.take("--tres-per-task") or "").split(",")):
        row = _TRES.match(part)
        if row is None:
            component.ignore(f"--tres-per-task={part}")
            continue
        resource = row[1] or _GPU
        number = _count_typed(component, "--tres-per-task", re.split("[:=]", row[2]))
        found[resource] = found.get(resource, 0) + number
    return found


def _count_typed(component: Component, name: str, parts: list[str]) -> int:
    """Return the number of `8`, `h100:8` or `h100`, split at the colons."""
    if len(parts) == 1 and not parts[0][:1].isdecimal():
        parts = [parts[0], "1"]
    *kind, number = parts
    if kind and kind[0]:
        component.ignore(f"{name}: the type {kind[0]}")
    if len(kind) > 1:
        number = ":".join(parts[1:])
    return parse_number(name, number, 0)


def build_error(name: str, text: str, problem: str) -> PlacementRequestError:
    """Return the error of an option's value."""
    return PlacementRequestError(name, f"{problem}, got '{show(text)}'")
