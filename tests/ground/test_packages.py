"""The layout of the packages: how full they are, how they import, and what their names mean."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.repository import ROOT, tracked_files

PACKAGES = ("agent", "generator", "runtime", "topology")
MAX_ENTRIES = 20
FIELD_WORDS = frozenset({"bonding", "cabling", "encoding", "wiring"})
"""Words in -ing that name a thing, as a Linux bond or the encoding of a value does."""


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of all modules that people write, by dotted name."""
    found = {}
    for path in tracked_files():
        parts = path.relative_to(ROOT).with_suffix("").parts
        if path.suffix == ".py" and parts[0] in PACKAGES and "_pb2" not in path.name:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def imports_of(name: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports, also inside functions and conditions."""
    for node in ast.walk(tree_of(name)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [module if module in modules() else node.module for module in full]
        yield from (module for module in names if module in modules() and module != name)


def test_it_keeps_every_package_small_enough_to_overlook() -> None:
    entries: dict[str, set[str]] = defaultdict(set)
    for name, path in modules().items():
        parent, _, entry = name.rpartition(".")
        if parent and path.name != "__main__.py":
            entries[parent].add(entry)
    assert not {name: len(found) for name, found in entries.items() if len(found) > MAX_ENTRIES}


def test_it_has_no_cycle_of_imports_also_not_inside_functions() -> None:
    graph = {name: set(imports_of(name)) for name in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"these modules import each other: {error.args[1]}") from error


def test_it_uses_every_class_name_of_a_room_for_one_thing() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for name in modules():
        room = name.rpartition(".")[0]
        classes = (node.name for node in tree_of(name).body if isinstance(node, ast.ClassDef))
        counts.update((room, found.lstrip("_")) for found in classes)
    assert not [name for name, count in counts.items() if count > 1]


def test_it_names_modules_with_nouns() -> None:
    words = {name: name.rpartition(".")[2].rpartition("_")[2] for name in modules()}
    wrong = [name for name, word in words.items() if word.endswith("ing")]
    assert not [name for name in wrong if words[name] not in FIELD_WORDS]


def test_it_lists_every_module_in_the_docstring_of_its_package() -> None:
    docs = {
        name: re.findall(r"\w+", ast.get_docstring(tree_of(name)) or "")
        for name, path in modules().items()
        if path.name == "__init__.py"
    }
    entries = [name.rpartition(".") for name, path in modules().items() if path.stem != "__main__"]
    assert not [(name, entry) for name, _, entry in entries if name and entry not in docs[name]]
