"""Kubernetes quantities such as `64`, `500m` or `16Gi`. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_SUFFIXES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_MAX_QUANTITY: Final = 2**62
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,64}\.?[0-9]{0,64}|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,3})?)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?)\Z"
)


def parse_amount(value: object) -> Decimal:
    """Return a Kubernetes quantity in its base unit, exactly: `63850m` gives 63.85.

    Source: Kubernetes apimachinery, pkg/api/resource/quantity.go.

    Raises:
        ValueError: the value is not a quantity, or is negative.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a quantity, got {type(value).__name__}")  # noqa: TRY004 - pydantic reports ValueError
    text = str(value).strip()
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"expected a quantity such as 8, 500m or 16Gi, got {text[:64]!r}")
    amount = Decimal(match["number"]) * _SUFFIXES[match["suffix"]]
    if not 0 <= amount <= _MAX_QUANTITY:
        raise ValueError(f"expected a quantity from 0 to {_MAX_QUANTITY}, got {text!r}")
    return amount


def parse_quantity(value: object) -> int:
    """Return a Kubernetes quantity as a whole number of its base unit, rounded down.

    `64` and `"64"` give 64, `"63850m"` 63, `"1Gi"` 1073741824: the capacity of a node.

    Raises:
        ValueError: the value is not a quantity, or is negative.
    """
    return int(parse_amount(value))
