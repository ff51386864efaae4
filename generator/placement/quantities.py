"""Quantities of resources such as `8`, `7900m` or `16Gi`, and the units in which they are counted.

The engine counts whole numbers and knows no units: millicores of `cpu`, and the base unit (bytes,
devices, slots) of every other resource. What a node has is rounded down to the unit, and what a pod
needs is rounded up to it, as kube-scheduler does. People read and write base units. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Final

UNITS_PER_BASE: Final[Mapping[str, int]] = {"cpu": 1000}
"""Units in one base unit; 1 for resources that are not listed."""
MAX_REQUEST_UNITS: Final = 2**53
"""Largest request that JSON readers keep exact; sums over a cluster stay below 64 bits."""
_SUFFIXES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_MAX_AMOUNT: Final = 2**62
_FINEST: Final = -9
"""Exponent of the finest amount of a pod that Kubernetes keeps: it rounds up to 1n."""
_EXACT: Final = Context(prec=1500, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Wide enough for the product of any two numbers here."""
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,64}\.?[0-9]{0,64}|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,3})?)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?)\Z"
)


def parse_amount(value: object) -> Decimal:
    """Return a Kubernetes quantity in its base unit: `63850m` gives 63.85.

    Exact, but for amounts finer than 1n. Source: Kubernetes apimachinery,
    pkg/api/resource/quantity.go.

    Raises:
        ValueError: the value is not a quantity, or is negative.
    """
    amount = parse_exact_amount(value)
    exponent = amount.as_tuple().exponent
    if isinstance(exponent, int) and exponent < _FINEST:
        return amount.quantize(Decimal((0, (1,), _FINEST)), ROUND_CEILING, _EXACT)
    return amount


def parse_exact_amount(value: object) -> Decimal:
    """Return a Kubernetes quantity in its base unit, however fine it is.

    Raises:
        ValueError: the value is not a quantity, or is negative.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a quantity, got {type(value).__name__}")  # noqa: TRY004 - pydantic reports ValueError
    return _parse_text(str(value).strip())


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Decimal:
    """Return the amount of a text; the nodes and pods of a cluster have few different ones."""
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"expected a quantity such as 8, 500m or 16Gi, got {text[:64]!r}")
    amount = _EXACT.multiply(Decimal(match["number"]), _SUFFIXES[match["suffix"]])
    if not 0 <= amount <= _MAX_AMOUNT:
        raise ValueError(f"expected a quantity from 0 to {_MAX_AMOUNT}, got {text[:64]!r}")
    return amount


def count_capacity(amounts: Mapping[str, Decimal]) -> dict[str, int]:
    """Return the units that a node has, by resource, rounded down."""
    return {name: min(_count(name, row, ROUND_FLOOR), _MAX_AMOUNT) for name, row in amounts.items()}


def count_units(resource: str, amount: Decimal) -> int:
    """Return the units that a pod needs, rounded up."""
    return _count(resource, amount, ROUND_CEILING)


def count_request(quantities: Mapping[str, int | str]) -> dict[str, int]:
    """Return the units that a pod needs, by resource, of quantities in base units or with suffix.

    Raises:
        ValueError: a quantity is malformed or out of range; the message names the resource.
    """
    units: dict[str, int] = {}
    for name, quantity in quantities.items():
        per_base = UNITS_PER_BASE.get(name, 1)
        if isinstance(quantity, int):
            num = quantity * per_base
        else:
            num = count_units(name, parse_amount(quantity))
        if not 0 <= num <= MAX_REQUEST_UNITS:
            most = MAX_REQUEST_UNITS // per_base
            raise ValueError(f"expected 0 to {most} of {name[:64]}, got {str(quantity)[:64]}")
        units[name] = num
    return units


def render_quantity(resource: str, units: int) -> int | str:
    """Return units as people write them: whole base units as a number, else `7900m`."""
    per_base = UNITS_PER_BASE.get(resource, 1)
    whole, rest = divmod(units, per_base)
    return f"{units}m" if rest else whole


def render_quantities(units: Iterable[tuple[str, int]]) -> dict[str, int | str]:
    """Return (resource, units) as a request: the inverse of `count_request`."""
    return {name: render_quantity(name, num) for name, num in units}


def ceil_quantity(quantity: int | str) -> int:
    """Return a quantity as whole base units, rounded up: for readers that know nothing finer."""
    return quantity if isinstance(quantity, int) else math.ceil(parse_amount(quantity))


def _count(resource: str, amount: Decimal, rounding: str) -> int:
    return _round(amount, UNITS_PER_BASE.get(resource, 1), rounding)


@lru_cache(maxsize=4096)
def _round(amount: Decimal, per_base: int, rounding: str) -> int:
    units = amount if per_base == 1 else _EXACT.multiply(amount, Decimal(per_base))
    return int(units.to_integral_value(rounding, _EXACT))
