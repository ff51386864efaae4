"""Silences: what somebody knows, says why, and does not want to hear about until a day.

They apply to anything that has a kind and ports: findings and differences from a cabling plan
alike. Without an end date a silence would outlive its reason, so one is required.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Generic, NamedTuple, TypeVar

from topology.model.errors import ConfigError, show
from topology.model.facts import PortName
from topology.model.ids import short_name

_Row = TypeVar("_Row")
_KEYS: Final = ("kind", "device", "port", "reason", "until")
_OPTIONAL: Final = "port"


class Silence(NamedTuple):
    """One known thing."""

    kind: str
    device: str
    port: str | None
    """None for every port of the device."""
    reason: str
    until: date
    """The last day on which it counts."""


class SilenceSubject(NamedTuple):
    """What a silence is compared with."""

    kind: str
    ports: Collection[PortName]
    """A match of one of them is enough."""


class SilencedRow(NamedTuple, Generic[_Row]):
    """A row that somebody silenced."""

    row: _Row
    silence: Silence


@dataclass(frozen=True, slots=True)
class SilenceSplit(Generic[_Row]):
    """Rows with the silenced ones set aside; both in the order given."""

    active: tuple[_Row, ...]
    silenced: tuple[SilencedRow[_Row], ...]
    expired: tuple[Silence, ...]
    """Silences whose day is past, whether they would match or not."""


def split_silenced(
    rows: Iterable[_Row],
    silences: Iterable[Silence],
    *,
    today: date,
    subject: Callable[[_Row], SilenceSubject],
) -> SilenceSplit[_Row]:
    """Set aside the rows that a silence matches; the first one that does gives the reason.

    Devices are compared by `topology.model.ids.short_name`, ports as they are. Cost: O(rows · silences
    of their kind).
    """
    silences = list(silences)
    current: dict[str, list[Silence]] = {}
    for silence in silences:
        if silence.until >= today:
            current.setdefault(silence.kind, []).append(silence)
    heard: list[_Row] = []
    silenced: list[SilencedRow[_Row]] = []
    for row in rows:
        about = subject(row)
        ends = {(short_name(end.device), port) for end in about.ports for port in (end.port, None)}
        found = next(
            (one for one in current.get(about.kind, ()) if _silence_key(one) in ends), None
        )
        if found is None:
            heard.append(row)
        else:
            silenced.append(SilencedRow(row, found))
    expired = tuple(one for one in silences if one.until < today)
    return SilenceSplit(tuple(heard), tuple(silenced), expired)


def _silence_key(silence: Silence) -> tuple[str, str | None]:
    return short_name(silence.device), silence.port


def parse_silences(document: object, *, kinds: Collection[str]) -> tuple[Silence, ...]:
    """Return the silences of a decoded document: a list, or an object with the list `silences`.

    Args:
        document: entries `{kind, device, port?, reason, until: YYYY-MM-DD}`.
        kinds: those that exist.

    Raises:
        ConfigError: an entry is wrong. None is skipped: a typing error must not unsilence.
    """
    listed = document.get("silences") if isinstance(document, Mapping) else document
    if not isinstance(listed, list):
        raise ConfigError("expected a list of silences")
    return tuple(_parse_entry(entry, number, kinds) for number, entry in enumerate(listed, 1))


def _parse_entry(entry: object, number: int, kinds: Collection[str]) -> Silence:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"silence {number}: expected an object with {', '.join(_KEYS)}")
    strange = next((key for key in entry if key not in _KEYS), None)
    if strange is not None:
        raise ConfigError(f"silence {number}: '{show(str(strange))}' is none of {', '.join(_KEYS)}")
    texts = {key: _read_text(entry, key, number) for key in _KEYS}
    if texts["kind"] not in kinds:
        known = ", ".join(sorted(kinds))
        raise ConfigError(f"silence {number}: kind '{show(texts['kind'])}' is none of {known}")
    try:
        until = date.fromisoformat(texts["until"])
    except ValueError:
        problem = f"until '{show(texts['until'])}' is no day such as 2027-01-31"
        raise ConfigError(f"silence {number}: {problem}") from None
    port = texts["port"] or None
    return Silence(texts["kind"], texts["device"], port, texts["reason"], until)


def _read_text(entry: Mapping[str, Any], key: str, number: int) -> str:
    """Return a field as text; a number is one, as in `port: 17`."""
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None and key == _OPTIONAL:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"silence {number}: {key} is missing or no text")
    return value.strip()


def render_silence(silence: Silence) -> dict[str, Any]:
    """Return a silence as the object that it was written as."""
    return {
        "kind": silence.kind,
        "device": silence.device,
        "port": silence.port,
        "reason": silence.reason,
        "until": silence.until.isoformat(),
    }
