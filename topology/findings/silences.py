"""Silences: known problems that a person silences until a date, with a reason.

A silence applies to anything that has a kind and ports: findings, and differences from a cabling
plan. The end date is required, because a silence without one would outlive its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Generic, NamedTuple, TypeVar

from topology.model.errors import ConfigError, show
from topology.model.facts import PortName
from topology.model.ids import may_be_one

_Row = TypeVar("_Row")
_KEYS: Final = ("kind", "device", "port", "reason", "until")
_OPTIONAL: Final = "port"


class Silence(NamedTuple):
    """One known problem."""

    kind: str
    device: str
    port: str | None
    """None means every port of the device."""
    reason: str
    until: date
    """The last day on which the silence applies."""


class SilenceSubject(NamedTuple):
    """The kind and the ports that a silence is compared with."""

    kind: str
    ports: Collection[PortName]
    """One matching port is enough."""


class SilencedRow(NamedTuple, Generic[_Row]):
    """A row that a silence matches."""

    row: _Row
    silence: Silence


@dataclass(frozen=True, slots=True)
class SilenceSplit(Generic[_Row]):
    """Active and silenced rows, both in the order given."""

    active: tuple[_Row, ...]
    silenced: tuple[SilencedRow[_Row], ...]
    expired: tuple[Silence, ...]
    """Silences whose last day is past, whether they would match or not."""


def split_silenced(
    rows: Iterable[_Row],
    silences: Iterable[Silence],
    *,
    today: date,
    subject: Callable[[_Row], SilenceSubject],
) -> SilenceSplit[_Row]:
    """Separate the rows that a silence matches; the first matching silence gives the reason.

    Device names are compared by `topology.model.ids.may_be_one`, ports exactly.
    Cost: O(rows · silences of their kind).
    """
    silences = list(silences)
    current: dict[str, list[Silence]] = {}
    for silence in silences:
        if silence.until >= today:
            current.setdefault(silence.kind, []).append(silence)
    active: list[_Row] = []
    silenced: list[SilencedRow[_Row]] = []
    for row in rows:
        silence_subject = subject(row)
        matching_silence = next(
            (
                silence
                for silence in current.get(silence_subject.kind, ())
                if any(_is_about(silence, end) for end in silence_subject.ports)
            ),
            None,
        )
        if matching_silence is None:
            active.append(row)
        else:
            silenced.append(SilencedRow(row, matching_silence))
    expired = tuple(silence for silence in silences if silence.until < today)
    return SilenceSplit(tuple(active), tuple(silenced), expired)


def _is_about(silence: Silence, end: PortName) -> bool:
    return silence.port in (None, end.port) and may_be_one(silence.device, end.device)


def parse_silences(document: object, *, kinds: Collection[str]) -> tuple[Silence, ...]:
    """Return the silences of a decoded document: a list, or an object with the list `silences`.

    Args:
        document: entries `{kind, device, port?, reason, until: YYYY-MM-DD}`.
        kinds: the kinds that exist.

    Raises:
        ConfigError: an entry is wrong. No entry is skipped: a typing error must not end a silence.
    """
    entries = document.get("silences") if isinstance(document, Mapping) else document
    if not isinstance(entries, list):
        raise ConfigError("expected a list of silences")
    return tuple(_parse_entry(entry, number, kinds) for number, entry in enumerate(entries, 1))


def _parse_entry(entry: object, number: int, kinds: Collection[str]) -> Silence:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"silence {number}: expected an object with {', '.join(_KEYS)}")
    unknown_key = next((key for key in entry if key not in _KEYS), None)
    if unknown_key is not None:
        raise ConfigError(
            f"silence {number}: '{show(str(unknown_key))}' is not one of {', '.join(_KEYS)}"
        )
    texts = {key: _read_text(entry, key, number) for key in _KEYS}
    if texts["kind"] not in kinds:
        known_kinds = ", ".join(sorted(kinds))
        raise ConfigError(
            f"silence {number}: kind '{show(texts['kind'])}' is not one of {known_kinds}"
        )
    try:
        until = date.fromisoformat(texts["until"])
    except ValueError:
        problem = f"until '{show(texts['until'])}' is not a date such as 2027-01-31"
        raise ConfigError(f"silence {number}: {problem}") from None
    port = texts["port"] or None
    return Silence(texts["kind"], texts["device"], port, texts["reason"], until)


def _read_text(entry: Mapping[str, Any], key: str, number: int) -> str:
    """Return a field as text; a number such as `port: 17` is accepted."""
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None and key == _OPTIONAL:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"silence {number}: {key} is missing or not a text")
    return value.strip()


def render_silence(silence: Silence) -> dict[str, Any]:
    """Return a silence as an object of the form that `parse_silences` reads."""
    return {
        "kind": silence.kind,
        "device": silence.device,
        "port": silence.port,
        "reason": silence.reason,
        "until": silence.until.isoformat(),
    }
