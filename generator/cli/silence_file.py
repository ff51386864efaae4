"""The file that `--silence` names: known problems to leave out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from topology.findings.silences import Silence, parse_silences
from topology.model.errors import ConfigError, show
from topology.model.facts import FindingKind

MAX_SILENCE_BYTES: Final = 16 << 20


def read_silences(file: Path | None) -> tuple[Silence, ...]:
    """Read a file of silences; without a file there are none.

    Raises:
        ConfigError: the file cannot be read, or an entry is wrong.
    """
    from generator.objects.yaml_document import list_documents
    from generator.store.file_kinds import FileKind, expect_kind
    from generator.store.local_files import read_input
    from topology.cabling.plan_diff import DifferenceKind

    if file is None:
        return ()
    source, raw = read_input(str(file), MAX_SILENCE_BYTES)
    kinds = frozenset(kind.value for kind in (*FindingKind, *DifferenceKind))
    silences: list[Silence] = []
    with expect_kind(file, FileKind.SILENCES):
        for document in list_documents(raw, source=source):
            try:
                silences += parse_silences(document.value, kinds=kinds)
            except ConfigError as error:
                raise ConfigError(f"{source}: {error}") from error
    return tuple(silences)


def print_expired_silences(expired: Iterable[Silence]) -> None:
    """List expired silences on stderr."""
    for silence in expired:
        place = show(silence.device) + (f" port {show(silence.port)}" if silence.port else "")
        text = f"{silence.kind} of {place}, until {silence.until}: {show(silence.reason)}"
        click.echo(f"silence expired: {text}", err=True)
