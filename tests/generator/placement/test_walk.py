"""A plain gang is placed in few steps: a reader can follow its request through the modules.

A *stay* is a run of functions of one module, in the order in which they are first called. A
*return* is a stay in a module that was left before. Methods of the values that travel along (the
request, the problem, the tree, the budget, the objective) are no stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import CodeType, FrameType, FunctionType

from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.request import PlacementRequest
from tests.generator.placement.documents import racks, request, workers
from tests.repository import ROOT

PACKAGE = "generator.placement."
MAX_STAYS = 20
MAX_RETURNS = 5


def walk_of(snapshot: Snapshot, asked: PlacementRequest) -> list[str]:
    """Return the modules in which a request stays until it is answered, in order."""
    stays: list[str] = []
    seen = set(value_methods())

    def follow(frame: FrameType, event: str, _: object) -> None:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        is_step = event == "call" and module.startswith(PACKAGE) and code not in seen
        if is_step and not code.co_name.startswith("<"):
            seen.add(code)
            if stays[-1:] != [module]:
                stays.append(module)

    sys.setprofile(follow)
    try:
        assert place(snapshot, asked, explains=False).is_feasible
    finally:
        sys.setprofile(None)
    return [module.removeprefix(PACKAGE) for module in stays]


def value_methods() -> Iterator[CodeType]:
    """Yield the code of all methods and properties of the package's values."""
    modules = [module for name, module in sys.modules.items() if name.startswith(PACKAGE)]
    for kind in {kind for module in modules for kind in vars(module).values() if is_value(kind)}:
        for member in vars(kind).values():
            wrapped = (getattr(member, name, None) for name in ("fget", "func", "__func__"))
            function = next(filter(None, wrapped), member)
            if isinstance(function, FunctionType):
                yield function.__code__


def is_value(kind: object) -> bool:
    """Return whether this is a class of frozen values, or of a placement's measures."""
    if not isinstance(kind, type) or not kind.__module__.startswith(PACKAGE):
        return False
    return is_dataclass(kind) or issubclass(kind, tuple)


def plain_walk() -> list[str]:
    """Return the walk of a gang of three pods, beyond one node, in racks of several sizes."""
    return walk_of(build_snapshot(racks(6, 8, 4, 6), {}), request(groups=workers(3)))


def test_a_plain_gang_is_placed_in_few_stays() -> None:
    walk = plain_walk()
    assert len(walk) <= MAX_STAYS
    assert len(walk) - len(set(walk)) <= MAX_RETURNS


def test_the_architecture_page_lists_the_walk() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = text.partition("stays in these modules, in this order:\n```\n")[2].partition("```")[0]
    assert listed.replace("->", " ").split() == plain_walk()
