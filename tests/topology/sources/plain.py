"""Facts as plain JSON, for expected files: without defaults, each id as one string."""

import json
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path

from topology.model.errors import ParseError
from topology.model.ids import Id

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def cases(source: str) -> list[Path]:
    """Return the input file of every fixture folder of a source."""
    found = sorted((FIXTURES / source).glob("*/input.*"))
    assert found, f"no fixtures for {source}"
    return found


def case_id(path: Path) -> str:
    return path.parent.name


def expected_text(value: object) -> str:
    return json.dumps(plain(value), indent=2, ensure_ascii=True) + "\n"


def plain(value: object) -> object:
    """Return facts as JSON values, without empty and absent fields."""
    match value:
        case ParseError():
            shown: object = str(value)
        case Id(kind, text, subtype):
            shown = "/".join(part for part in (kind.value, subtype, text) if part)
        case StrEnum():
            shown = value.value
        case tuple() if hasattr(value, "_asdict"):
            shown = _fields(value._asdict())
        case tuple():
            shown = [plain(item) for item in value]
        case dict():
            shown = {key: plain(item) for key, item in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            shown = _fields({found.name: getattr(value, found.name) for found in fields(value)})
        case _:
            shown = value
    return shown


def _fields(found: dict[str, object]) -> dict[str, object]:
    return {name: plain(item) for name, item in found.items() if item not in ("", None, (), {})}
