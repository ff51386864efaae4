"""Public names of a package whose modules are loaded when a name is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def load_when_used(package: str, module_of: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    Args:
        package: the name of the package.
        module_of: by public name, the module inside the package that has it.
    """

    def load(name: str) -> object:
        if name not in module_of:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        value: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
        return value

    return load
