"""Words, scripts and environment variables as options of sbatch with their values.

Words are read as getopt_long does, which sbatch uses; lines of a script as sbatch does.
Source: src/sbatch/opt.c of Slurm 25.11.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NamedTuple

from generator.manifests.fields import Note
from generator.manifests.slurm.options import (
    ALIASES,
    BY_LETTER,
    OPTIONS,
    VARIABLES,
    Argument,
    Effect,
    SbatchOption,
    find_named,
)
from topology.model.errors import PlacementRequestError, show

YES: Final = "yes"
"""The value of an option that is given without one."""
MAX_WORDS: Final = 2048
_MIN_LIKENESS: Final = 0.75
"""The likeness from which on a word counts as a misspelled option."""
_DIRECTIVE: Final = re.compile(r"#SBATCH(.*)\Z", re.DOTALL)
_FOREIGN: Final = re.compile(r"#(?:PBS|BSUB|SLURM)\b")
_COMPONENT: Final = re.compile(r"\s*(?:hetjob|packjob)(?=\s|\Z)", re.IGNORECASE)
_SEPARATOR: Final = ":"
_WAIT_FOR_SWITCHES: Final = "SBATCH_WAIT4SWITCH"


@dataclass(slots=True)
class GivenOptions:
    """The options of one component from one source, by name; of several equal ones the last."""

    values: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    """Words that no option of the table explains."""
    script: tuple[str, ...] = ()
    """The name of the script and its arguments, which end the options."""


class BatchScript(NamedTuple):
    """The lines of a script that sbatch reads."""

    components: tuple[tuple[str, ...], ...]
    """Words, per component of a heterogeneous job."""
    foreign: tuple[str, ...]
    """Lines for other systems that sbatch translates."""
    notes: tuple[Note, ...]


def is_script(text: str) -> bool:
    """Return whether a text is a batch script."""
    return text.startswith("#!") and any(map(_DIRECTIVE.match, text.splitlines()))


def parse_script(text: str) -> BatchScript:
    """Return the options of a script, up to the first command.

    Raises:
        PlacementRequestError: a line is one that sbatch refuses; names it.
    """
    components: list[list[str]] = [[]]
    foreign, notes = [], []
    has_command = False
    for number, line in enumerate(text.split("\n"), 1):
        place, directive = f"line {number}", _DIRECTIVE.match(line)
        if has_command:
            if directive:
                notes.append(Note(place, "sbatch ignores #SBATCH after the first command"))
        elif line.endswith("\r"):
            raise PlacementRequestError(place, "sbatch refuses line breaks of DOS (\\r\\n)")
        elif directive:
            rest = directive[1]
            if component := _COMPONENT.match(rest):
                components.append([])
                rest = rest[component.end() :]
            components[-1].extend(_split_directive(rest, place))
        elif _FOREIGN.match(line):
            foreign.append(f"{place}: {line}")
        else:
            has_command = bool(line.strip()) and not line.lstrip().startswith("#")
    return BatchScript(tuple(map(tuple, components)), tuple(foreign), tuple(notes))


def _split_directive(text: str, place: str) -> Iterator[str]:
    """Yield the words of an #SBATCH line: a quote, a backslash and # keep their meaning in words.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escapedquotes = True, "#", "'\""
    try:
        yield from lexer
    except ValueError as error:
        raise PlacementRequestError(place, f"{error}: {show(text.strip())}") from error


def split_words(text: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlacementRequestError("sbatch", f"{error}: {show(text)}") from error


def parse_command_line(words: Sequence[str]) -> list[GivenOptions]:
    """Return the options of each component; the last one has the script.

    Raises:
        PlacementRequestError: there are too many words, or one is one that sbatch refuses.
    """
    if len(words) > MAX_WORDS:
        raise PlacementRequestError("sbatch", f"expected at most {MAX_WORDS} words")
    components: list[GivenOptions] = []
    rest = list(words)
    while not components or rest:
        given = parse_options(rest)
        components.append(given)
        if given.script[:1] != (_SEPARATOR,):
            break
        rest, given.script = list(given.script[1:]), ()
    return components


def parse_options(words: Iterable[str]) -> GivenOptions:
    """Return the options up to the first word that is none.

    Raises:
        PlacementRequestError: an option is ambiguous, or its value is missing or not wanted.
    """
    given = GivenOptions()
    rest = list(reversed(list(words)))
    while rest and rest[-1].startswith("-") and rest[-1] != "-":
        word = rest.pop()
        if word == "--":
            break
        if word.startswith("--"):
            _add_long(given, word, rest)
        else:
            _add_letters(given, word, rest)
    given.script = tuple(reversed(rest))
    return given


def _add_long(given: GivenOptions, word: str, rest: list[str]) -> None:
    name, equals, value = word.partition("=")
    found = find_named(name)
    if len(found) > 1:
        names = ", ".join(option.name for option in found)
        raise PlacementRequestError("sbatch", f"{show(name)} is ambiguous: {names}")
    if not found:
        given.unknown.append(word)
        if not equals and len(rest) > 1 and not rest[-1].startswith("-"):
            given.unknown.append(rest.pop())
        return
    (option,) = found
    if not equals:
        value = _take_value(option, rest)
    elif option.argument is Argument.NONE:
        raise PlacementRequestError(option.name, f"expected no value, got '{show(value)}'")
    given.values[option.name] = value


def _add_letters(given: GivenOptions, word: str, rest: list[str]) -> None:
    """Add options of one letter: flags may share a word, and a value may follow its letter."""
    for index, letter in enumerate(word[1:], 1):
        option, value = BY_LETTER.get(letter), word[index + 1 :]
        if option is None:
            given.unknown.append(word if index == 1 else f"-{word[index:]}")
            return
        if option.argument is Argument.NONE:
            given.values[option.name] = YES
            continue
        given.values[option.name] = value or _take_value(option, rest)
        return


def _take_value(option: SbatchOption, rest: list[str]) -> str:
    if option.argument is not Argument.REQUIRED:
        return YES
    if not rest:
        raise PlacementRequestError(option.name, "expected a value, got the end of the line")
    return rest.pop()


def correct_options(words: Sequence[str]) -> list[str]:
    """Return the words as they were meant if the first one is an option without its dashes.

    A number as the first word is one of nodes. Words that cannot be options stay. Nothing is
    returned if the first one may be a script.
    """
    rest = list(reversed(words))
    fixed = [f"--nodes={rest.pop()}"] if words[0].isdecimal() else []
    while rest:
        word = rest.pop()
        option = _find_meant(word, has_more=bool(rest))
        if option is None:
            if not fixed:
                return []
            fixed.append(word)
            continue
        value = word.partition("=")[2]
        if not value and option.argument is Argument.REQUIRED:
            value = rest.pop()
        fixed.append(f"{option.name}={value}" if value else option.name)
    return fixed


def _find_meant(word: str, *, has_more: bool) -> SbatchOption | None:
    """Return the option that a word without dashes means."""
    name, equals, _ = word.partition("=")
    option = BY_LETTER.get(name) or OPTIONS.get(ALIASES.get(f"--{name}", f"--{name}"))
    if option is None and equals:
        found = find_named(f"--{name}")
        near = get_close_matches(f"--{name}", OPTIONS, n=1, cutoff=_MIN_LIKENESS)
        if len(found) == 1:
            option = found[0]
        elif near:
            option = OPTIONS[near[0]]
    if option is not None and option.argument is Argument.REQUIRED and not (equals or has_more):
        return None
    return option


def parse_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options that environment variables set, by name.

    A flag is set by an empty variable, by `yes` and by a number other than 0. Variables of options
    without effect are not read.
    """
    values: dict[str, str] = {}
    for variable, option in VARIABLES.items():
        text = environment.get(variable)
        if text is None or option.effect is Effect.NONE:
            continue
        is_on = text in ("", YES) or (text.isdecimal() and int(text) != 0)
        if option.argument is Argument.REQUIRED:
            values[option.name] = text
        elif is_on:
            values[option.name] = YES
        elif option.argument is Argument.OPTIONAL:
            values[option.name] = text
    wait = environment.get(_WAIT_FOR_SWITCHES)
    switches = values.get("--switches")
    if wait and switches and "@" not in switches:
        values["--switches"] = f"{switches}@{wait}"
    return values
