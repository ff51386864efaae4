"""Counts the stays on a walk: the runs of functions of one module, until an answer is there.

Each function counts where it is first called. Methods of the values that travel along (reports,
claims, rows, the request, the tree) do not count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from types import CodeType, FrameType, FunctionType

from msgspec import Struct

from topology.model.claims import LazyClaim


def walk_of(packages: tuple[str, ...], run: Callable[[], object]) -> list[str]:
    """Return the modules of these packages in which a call stays until it returns, in order."""
    calls: dict[CodeType, str] = {}

    def follow(frame: FrameType, event: str, _: object) -> None:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if event == "call" and module.startswith(packages) and not code.co_name.startswith("<"):
            calls.setdefault(code, module)

    sys.setprofile(follow)
    try:
        run()
    finally:
        sys.setprofile(None)
    of_values = set(_value_methods(packages))
    stays: list[str] = []
    for code, module in calls.items():
        if code not in of_values and stays[-1:] != [module]:
            stays.append(module)
    return stays


def _value_methods(packages: tuple[str, ...]) -> Iterator[CodeType]:
    """Yield the code of all methods and properties of the values of these packages."""
    modules = [module for name, module in sys.modules.items() if name.startswith(packages)]
    for kind in {kind for module in modules for kind in vars(module).values() if _is_value(kind)}:
        if not kind.__module__.startswith(packages):
            continue
        for member in vars(kind).values():
            wrapped = (getattr(member, name, None) for name in ("fget", "func", "__func__"))
            function = next(filter(None, wrapped), member)
            if isinstance(function, FunctionType):
                yield function.__code__


def _is_value(kind: object) -> bool:
    """Return whether this is a class of values: of facts, of rows, or of a placement's measures."""
    if not isinstance(kind, type):
        return False
    return is_dataclass(kind) or issubclass(kind, (Exception, LazyClaim, Sequence, Struct))
