"""Makes click options of settings: one option for each field that declares one.

Each option has an environment variable: `TOPONAUT_AGENT_` and the option's name in capitals. The
variable of an option that can be given several times holds its values separated by blanks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import click

from agent.settings import Option
from runtime.click_types import GivenPath, refusing

ENV_PREFIX: Final = "TOPONAUT_AGENT_"

Values = dict[str, Any]
"""The values that click parsed, by the long names of the options with `_` for `-`."""
Callback = Callable[[click.Context, click.Parameter, Any], object]
"""Turns the value that click parsed into the value of the setting."""
Group = TypeVar("Group")
Command = TypeVar("Command", bound=Callable[..., None])


def options_of(*groups: type) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of settings to a command.

    Args:
        groups: dataclasses; the help lists their options in this order, and by their fields.
    """
    settings = [setting for group in groups for setting in _settings_of(group)]

    def decorate(command: Command) -> Command:
        for setting in reversed(settings):
            command = setting.click_option()(command)
        return command

    return decorate


def read_group(group: type[Group], values: Values, **others: object) -> Group:
    """Return settings made of the values that click parsed.

    Args:
        group: the dataclass.
        values: the values of the command's options.
        others: fields without an option, and fields that replace a parsed value.
    """
    own = {
        setting.field: values[setting.parameter]
        for setting in _settings_of(group)
        if setting.group is group and setting.field not in others
    }
    return group(**own, **others)


class _Setting(NamedTuple):
    """A field and its option."""

    group: type
    field: str
    kind: object
    """The field's type."""
    option: Option

    @property
    def parameter(self) -> str:
        """The name that click gives to the value."""
        return self.option.flags.split()[0].lstrip("-").replace("-", "_")

    def click_option(self) -> Callable[[Command], Command]:
        """Return the decorator that adds the option to a command."""
        option, own_env = self.option, ENV_PREFIX + self.parameter.upper()
        shown: dict[str, Any] = {}
        if option.default is not None:
            shown = {"default": option.default, "show_default": True}
        return click.option(
            *option.flags.split(),
            self.parameter,
            envvar=[own_env, option.other_env] if option.other_env else own_env,
            type=self._click_type(),
            is_flag=self.kind is bool,
            multiple=get_origin(self.kind) is tuple and option.parse is None,
            callback=self._callback(),
            metavar=option.metavar,
            help=option.help,
            **shown,
        )

    def _callback(self) -> Callback | None:
        if self.option.parse_each is not None:
            return _parsed_by(_each_by(self.option.parse_each))
        return _parsed_by(self.option.parse) if self.option.parse is not None else None

    def _click_type(self) -> Any:  # noqa: ANN401 - click takes many
        if self.option.choices:
            return click.Choice(self.option.choices)
        if self.option.type is None and Path in (self.kind, *get_args(self.kind)):
            return GivenPath()
        return self.option.type


def _settings_of(group: type) -> Iterator[_Setting]:
    """Yield the fields that declare an option, with those of nested groups in their place."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        hint = hints[field.name]
        for declared in getattr(hint, "__metadata__", ()):
            if isinstance(declared, Option):
                yield _Setting(group, field.name, hint.__origin__, declared)
            elif isinstance(declared, type) and is_dataclass(declared):
                yield from _settings_of(declared)


def _each_by(parse: Callable[[str], object]) -> Callable[[Iterable[str]], object]:
    """Return a parser of the texts of an option that can be given several times."""
    return lambda texts: tuple(map(parse, texts))


def _parsed_by(parse: Callable[[Any], object]) -> Callback:
    """Return a callback that parses an option's value."""
    refused = refusing(parse)
    return lambda _context, _parameter, value: None if value is None else refused(value)
