"""The option `--silence` of the commands that list what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from generator.objects.yaml_document import parse_documents
from generator.store.local_files import read_whole_file
from topology.cabling.plan_diff import DifferenceKind
from topology.findings.silences import Silence, parse_silences
from topology.model.errors import ConfigError, ParseError, show
from topology.model.facts import FindingKind

MAX_SILENCE_BYTES: Final = 16 << 20
_KINDS: Final = frozenset([*(kind.value for kind in (*FindingKind, *DifferenceKind))])

silence_option: Final[Callable[..., Any]] = click.option(
    "--silence",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What is known: a YAML list of {kind, device, port, reason, until: YYYY-MM-DD}; "
    "reason and until are required, port may be left out.",
)


def read_silences(file: Path | None) -> tuple[Silence, ...]:
    """Read a file of silences, none where no file is named.

    Raises:
        ConfigError: it cannot be read, or an entry of it is wrong.
    """
    if file is None:
        return ()
    source = show(str(file), 1024)
    raw = read_whole_file(file, MAX_SILENCE_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    found: list[Silence] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        try:
            found += parse_silences(document.value, kinds=_KINDS)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from error
    return tuple(found)


def print_expired_silences(expired: Iterable[Silence]) -> None:
    """Say on stderr which silences are over."""
    for silence in expired:
        place = show(silence.device) + (f" port {show(silence.port)}" if silence.port else "")
        said = f"{silence.kind} of {place}, until {silence.until}: {show(silence.reason)}"
        click.echo(f"silence expired: {said}", err=True)
