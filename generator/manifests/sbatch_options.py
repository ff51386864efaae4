"""The options of sbatch: their names, their values, and which of them had an effect.

Source: the sbatch manual page of Slurm 25.11.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

from generator.manifests.fields import MAX_INTEGER, Note
from generator.manifests.ignored_fields import IgnoredField, Relevance
from topology.model.errors import PlacementRequestError, show

_DIRECTIVE = re.compile(r"#SBATCH\s+(.*)\Z")
_COMPONENT: Final = frozenset({":", "hetjob"})
_READ_OPTIONS: Final = {
    "--ntasks": "-n",
    "--ntasks-per-node": "",
    "--cpus-per-task": "-c",
    "--segment": "",
    "--nodes": "-N",
    "--switches": "",
    "--gpus": "-G",
    "--gpus-per-node": "",
    "--gpus-per-task": "",
    "--gres": "",
    "--mem": "",
    "--job-name": "-J",
    "--priority": "",
}
_IGNORABLE_OPTIONS: Final = {
    "--account": "-A",
    "--chdir": "-D",
    "--comment": "",
    "--error": "-e",
    "--export": "",
    "--input": "-i",
    "--mail-type": "",
    "--mail-user": "",
    "--open-mode": "",
    "--output": "-o",
    "--partition": "-p",
    "--qos": "-q",
    "--signal": "",
    "--time": "-t",
    "--wckey": "",
}
_UNSUPPORTED_OPTIONS: Final = {
    "--array": "-a",
    "--begin": "-b",
    "--cluster-constraint": "",
    "--clusters": "-M",
    "--constraint": "-C",
    "--core-spec": "-S",
    "--cores-per-socket": "",
    "--cpus-per-gpu": "",
    "--deadline": "",
    "--dependency": "-d",
    "--distribution": "-m",
    "--exclude": "-x",
    "--extra-node-info": "-B",
    "--gpus-per-socket": "",
    "--gres-flags": "",
    "--hint": "",
    "--licenses": "-L",
    "--mem-per-cpu": "",
    "--mem-per-gpu": "",
    "--mincpus": "",
    "--nodefile": "-F",
    "--nodelist": "-w",
    "--ntasks-per-core": "",
    "--ntasks-per-gpu": "",
    "--ntasks-per-socket": "",
    "--prefer": "",
    "--reservation": "",
    "--sockets-per-node": "",
    "--thread-spec": "",
    "--threads-per-core": "",
    "--tmp": "",
    "--tres-per-task": "",
}
"""They take a value and may matter. Any other option that is unknown here is reported too."""
OPTIONS: Final = _READ_OPTIONS | _IGNORABLE_OPTIONS | _UNSUPPORTED_OPTIONS
SWITCHES: Final = ("--spread-segments", "--consolidate-segments", "--exclusive")
_WITHOUT_EFFECT: Final = frozenset({*_IGNORABLE_OPTIONS, "--ntasks", "--ntasks-per-node"})
"""Options that say nothing about placement, at least where no other option gives them a meaning."""
YES: Final = "yes"


class _SbatchParser(argparse.ArgumentParser):
    """A parser that reports problems as errors of the request."""

    def error(self, message: str) -> NoReturn:
        """Refuse the options."""
        raise PlacementRequestError("sbatch", show(message))


class Component:
    """The options of one component of a job. An option that is not taken has no effect."""

    def __init__(self, values: argparse.Namespace, notes: list[Note]) -> None:
        """Store the options that are set.

        Args:
            values: by name; None for an option that is not set.
            notes: of the whole job; grows as options are read.
        """
        self._values = {name: value for name, value in vars(values).items() if value is not None}
        self._taken: set[str] = set()
        self._parts: list[str] = []
        self.notes = notes

    def take(self, name: str) -> str | None:
        """Return the value of an option, which thereby has an effect."""
        self._taken.add(_build_option_key(name))
        return self.peek(name)

    def peek(self, name: str) -> str | None:
        """Return the value of an option."""
        value: str | None = self._values.get(_build_option_key(name))
        return value

    def take_number(self, name: str, minimum: int = 0) -> int | None:
        """Return the value of an option as a number; None if it is not set."""
        value = self.take(name)
        return None if value is None else parse_number(name, value, minimum)

    def ignore(self, part: str) -> None:
        """Report a part of an option that was taken."""
        self._parts.append(part)

    def find_ignored(self) -> Iterator[IgnoredField]:
        """Yield what has no effect."""
        for key, value in self._values.items():
            name = f"--{key.replace('_', '-')}"
            if key in self._taken:
                continue
            if name in _WITHOUT_EFFECT:
                yield IgnoredField(name, Relevance.NONE)
            else:
                shown = name if value == YES else f"{name}={value}"
                yield IgnoredField(show(shown), Relevance.POSSIBLE)
        for part in self._parts:
            yield IgnoredField(show(part), Relevance.POSSIBLE)


def is_script(text: str) -> bool:
    """Return whether a text is a batch script."""
    return text.startswith("#!") and any(map(_DIRECTIVE.match, text.splitlines()))


def parse_script_options(text: str) -> list[str]:
    """Return the options of the #SBATCH lines; lines after the first command are ignored.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    options: list[str] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        if directive:
            options.extend(split_options(directive[1].partition(" #")[0]))
        elif line.strip() and not line.startswith("#"):
            break
    return options


def split_options(text: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        PlacementRequestError: a quotation is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlacementRequestError("sbatch", f"{error}: {show(text)}") from error


def parse_script_notes(text: str) -> list[Note]:
    """Return a note on each #SBATCH line after the first command, where sbatch ignores it."""
    notes: list[Note] = []
    has_command = False
    for number, line in enumerate(text.splitlines(), 1):
        if has_command and _DIRECTIVE.match(line):
            notes.append(Note(f"line {number}", "sbatch ignores #SBATCH after the first command"))
        has_command = has_command or bool(line.strip() and not line.startswith("#"))
    return notes


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the options of one component."""
    parser = _SbatchParser(prog="sbatch", add_help=False, allow_abbrev=False)
    for name, short in OPTIONS.items():
        names = [name, short] if short else [name]
        parser.add_argument(*names)
    for name in SWITCHES:
        parser.add_argument(name, nargs="?", const=YES)
    return parser


def split_components(options: Sequence[str]) -> Iterator[list[str]]:
    """Yield the options of each component of a heterogeneous job."""
    words: list[str] = []
    for word in options:
        if word in _COMPONENT:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def split_script(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the options, and the script with its arguments, which are no options of sbatch."""
    takes_value = {*OPTIONS, *OPTIONS.values()}
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        is_unknown = before.startswith("--") and "=" not in before and before not in SWITCHES
        if not word.startswith("-") and before not in takes_value and not is_unknown:
            return words[:index], words[index:]
    return words, []


def _build_option_key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def parse_number(name: str, text: str, minimum: int = 0) -> int:
    """Return the value of an option as a number.

    Raises:
        PlacementRequestError: it is no number from `minimum` to a million.
    """
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII) or not minimum <= int(text) <= MAX_INTEGER:
        raise build_error(name, text, f"expected an integer from {minimum} to {MAX_INTEGER}")
    return int(text)


def build_error(name: str, text: str, problem: str) -> PlacementRequestError:
    """Return the error of an option's value."""
    return PlacementRequestError(name, f"{problem}, got '{show(text)}'")
