"""How a command declares its options, for both programs.

A parameter of a command declares its option where a default would be, and so does each field of a
NamedTuple that is such a parameter: `depth: int | None = option("Levels to print.")` is `--depth`.
A `bool` is a flag, a `tuple` a repeatable option, a `Path` a path, and an enum a choice of its
values. A parameter or field without a default is a NamedTuple with options of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from enum import Enum
from functools import wraps
from itertools import takewhile
from pathlib import Path
from types import NoneType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import click

from topology.model.errors import ConfigError, show

P = ParamSpec("P")
ValueT = TypeVar("ValueT")
_MIN_LIKENESS: Final = 0.75
_MAX_MATCHES: Final = 50
_MAX_SUGGESTED: Final = 3
_MIN_BEGINNING: Final = 3


def suggest_names(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` with the names that are most like an unknown one, or nothing.

    Cost: O(names), 20 µs each.
    """
    known = list(known)
    matches = get_close_matches(name, known, n=_MAX_MATCHES, cutoff=_MIN_LIKENESS)
    ratio = {match: SequenceMatcher(None, match, name).ratio() for match in matches}
    best = sorted(matches, key=lambda match: (-ratio[match], len(match), match))
    best = best or _list_same_beginning(name, known)
    shown = " or ".join(map(show, best[:_MAX_SUGGESTED]))
    return f"; did you mean {shown}?" if shown else ""


def _list_same_beginning(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that begin most like a name: in at least three quarters of its letters.

    `leaf-p99` is not like the longer `leaf-p02-g07-r1` as a whole.
    """
    lengths = {
        other: sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False))
        )
        for other in known
    }
    most = max(lengths.values(), default=0)
    if most < _MIN_BEGINNING or most < _MIN_LIKENESS * len(name):
        return []
    nearest = (other for other, length in lengths.items() if length == most)
    return sorted(nearest, key=lambda other: (len(other), other))


class Choice(click.Choice[str]):
    """One of several words; a wrong one gets the nearest of them."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return the error about a wrong word."""
        message = super().get_invalid_choice_message(value, ctx)
        similar = suggest_names(str(value), self.choices)
        return f"{message.removesuffix('.')}{similar}" if similar else message


class GivenPath(click.Path):
    """A path that is not empty: an unset variable of a script must not name the current folder."""

    def __init__(
        self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True
    ) -> None:
        """Store what the path may be."""
        super().__init__(exists, file_okay, dir_okay, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path of a text."""
        if not os.fspath(value):
            self.fail("the path is empty.", param, ctx)
        return self.check(value, param, ctx)

    def check(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path if it is usable, by the rules of click."""
        return Path(os.fsdecode(super().convert(value, param, ctx)))


ANY_PATH: Final = GivenPath()


def refusing(parse: Callable[P, ValueT]) -> Callable[P, ValueT]:
    """Return a parser whose ConfigError is an error of usage."""

    @wraps(parse)
    def parse_value(*args: P.args, **kwargs: P.kwargs) -> ValueT:
        try:
            return parse(*args, **kwargs)
        except ConfigError as error:
            raise click.BadParameter(str(error)) from error

    return parse_value


class _Declared(NamedTuple):
    """The option or argument of a parameter or field."""

    build: Callable[[str, Any], click.Parameter]
    """Takes the name and the type of the field."""


class _Group(NamedTuple):
    """A parameter or field that has options of its own."""

    help: str = ""
    """The help of the first option; empty: the option's own help."""


def option(
    help: str,  # noqa: A002 - click's
    *flags: str,
    path: click.Path = ANY_PATH,
    **settings: Any,  # noqa: ANN401 - click's
) -> Any:  # noqa: ANN401 - stands for the value
    """Declare an option.

    Args:
        help: its help.
        flags: the spellings; by default `--` and the name of the field. A spelling without dashes
            is the name of click's value, if that name must differ from the flag.
        path: the type of a `Path`.
        settings: settings of click that do not follow from the type of the value.
    """

    def build(name: str, kind: Any) -> click.Parameter:  # noqa: ANN401 - a type
        # True or None, never False: with `is_flag=False`, click takes a value as optional.
        is_flag = True if kind is bool else None
        has_default = True if settings.get("default") is not None else None
        derived = {
            "type": _find_type(kind, path),
            "is_flag": is_flag,
            "multiple": get_origin(kind) is tuple,
            "show_default": has_default,
        }
        spellings = flags or (f"--{name.replace('_', '-')}",)
        return click.Option(spellings, help=help, **derived | settings)

    return _Declared(build)


def argument(
    *,
    path: click.Path = ANY_PATH,
    cls: type[click.Argument] = click.Argument,
    **settings: Any,  # noqa: ANN401 - click's
) -> Any:  # noqa: ANN401 - stands for the value
    """Declare a positional argument."""
    return _Declared(lambda name, kind: cls([name], **{"type": _find_type(kind, path)} | settings))


def group(help: str = "") -> Any:  # noqa: A002, ANN401 - click's
    """Declare a NamedTuple with options of its own, after fields with defaults.

    Args:
        help: the help of the first option; empty: the option's own help.
    """
    return _Group(help)


def list_params(owner: Any) -> Iterator[click.Parameter]:  # noqa: ANN401 - a function or a class
    """Yield the options and arguments of a function or NamedTuple, in the declared order."""
    for name, kind, declared in _list_fields(owner):
        if isinstance(declared, _Declared):
            yield declared.build(name, kind)
            continue
        inner = list(list_params(kind))
        if declared.help and isinstance(inner[0], click.Option):
            inner[0].help = declared.help
        yield from inner


def collect_values(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Return the values of the parameters or fields of an owner.

    Args:
        owner: the function or NamedTuple.
        values: the values of the options, by click's names.
    """
    collected: dict[str, Any] = {}
    for name, kind, declared in _list_fields(owner):
        if isinstance(declared, _Declared):
            name_in_click = declared.build(name, kind).name or name
            collected[name] = _convert(kind, values[name_in_click])
        else:  # a group: a NamedTuple with options of its own
            collected[name] = kind(**collect_values(kind, values))
    return collected


def _list_fields(owner: Any) -> Iterator[tuple[str, Any, _Declared | _Group]]:  # noqa: ANN401
    """Yield the name, the type and the declaration of each parameter or field that has one."""
    defaults = getattr(owner, "_field_defaults", None)
    defaults = (owner.__kwdefaults__ or {}) if defaults is None else defaults
    for name, kind in get_type_hints(owner).items():
        declared = defaults.get(name, _Group())
        if name != "return" and isinstance(declared, _Declared | _Group):
            yield name, _find_inner(kind) if isinstance(declared, _Group) else kind, declared


def _convert(kind: Any, value: Any) -> Any:  # noqa: ANN401 - a type, and click's value
    """Return the value of an option; members of an enum for their texts."""
    inner = _find_inner(kind)
    if value is None or not issubclass(inner, Enum):
        return value
    return tuple(map(inner, value)) if isinstance(value, tuple) else inner(value)


def _find_type(kind: Any, path: click.Path) -> Any:  # noqa: ANN401 - a type, and click's
    inner = _find_inner(kind)
    if issubclass(inner, Enum):
        return Choice([row.value for row in inner])
    return path if inner is Path else None


def _find_inner(kind: Any) -> type:  # noqa: ANN401 - a type
    """Return the type of one value: `Path` of `tuple[Path, ...]` or `Path | None`."""
    found: type = next((row for row in get_args(kind) if row is not NoneType), kind)
    return found
