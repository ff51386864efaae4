"""Where the absent cables between two switches belong, by the cables that are there.

The peers of a switch show at which of its ports a cable is absent: a port that they use, and that
has no link here. The other end follows from the peers of the far switch, from where peers lead from
a port of the same name, or from the other cables of the bundle, whose ports have one distance. If
more ports fit than cables are absent, all of them are returned, and none is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from topology.findings.usual_ports import Shift, UsualPorts, measure_shift

_MAX_CHOICES: Final = 4
"""More ports are no help."""
_UNKNOWN: Final = ("", "")


class AbsentCables(NamedTuple):
    """The ports of the absent cables between two devices, as far as other cables show them."""

    ends: Sequence[tuple[str, str]]
    """The near and the far port of each cable; one row if no port is known. An empty text is
    unknown."""
    near_choices: Sequence[str]
    """The near ports, or more of which they are some; none if nothing shows them."""
    far_choices: Sequence[str]


def infer_absent_cables(rules: Sequence[UsualPorts], near: int, far: int, num: int) -> AbsentCables:
    """Return where the absent cables between two devices belong.

    Args:
        rules: the ports in use, narrowest first: of the cohort of the near device, of its group.
        near: the near device.
        far: the far device.
        num: how many cables are absent.
    """
    own, shift = rules[0], rules[0].find_shift(near, far)

    def is_near(port: str) -> bool:
        return own.is_free(near, port) and own.find_far_device(port) in {None, far}

    def is_far(port: str) -> bool:
        return own.is_free(far, port) and own.find_near_device(port) in {None, near}

    nears = _narrow(
        (row for rule in rules for row in rule.list_near_choices(near, far)), num, is_near
    )
    fars = _narrow((row for rule in rules for row in rule.list_far_choices(near, far)), num, is_far)
    if len(nears) == len(fars) == num == 1:
        found = AbsentCables([(nears[0], fars[0])], nears, fars)
    elif len(nears) == num:
        ports = [
            next(filter(None, (rule.find_far_port(port, far) for rule in rules)), "")
            or _shift_port(port, shift, is_far)
            for port in nears
        ]
        is_known = _may_be(ports, fars)
        ends = list(zip(nears, ports if is_known else [""] * num, strict=True))
        found = AbsentCables(ends, nears, ports if is_known else fars)
    elif len(fars) == num:
        ports = [_shift_port(port, shift and shift.reverse(), is_near) for port in fars]
        is_known = _may_be(ports, nears)
        ends = list(zip(ports if is_known else [""] * num, fars, strict=True))
        found = AbsentCables(ends, ports if is_known else nears, fars)
    else:
        found = AbsentCables([_UNKNOWN], nears, fars)
    # Peers that contradict the bundle are misread, such as those of two pods that seem to be one.
    is_refuted = shift and any(all(ends) and measure_shift(*ends) != shift for ends in found.ends)
    return AbsentCables([_UNKNOWN], (), ()) if is_refuted else found


def _narrow(
    choices: Iterable[Sequence[str]], num: int, fits: Callable[[str], bool]
) -> Sequence[str]:
    """Return the first choice of as many ports as cables are absent, else the fewest of some."""
    best: Sequence[str] = ()
    for ports in choices:
        if len(ports) == num and all(map(fits, ports)):
            return ports
        if num < len(ports) <= _MAX_CHOICES and (not best or len(ports) < len(best)):
            best = ports
    return best


def _may_be(found: Sequence[str], choices: Sequence[str]) -> bool:
    """Return whether found ports are known, all different, and among the choices if there are."""
    return all(found) and len({*found}) == len(found) and (not choices or {*found} <= {*choices})


def _shift_port(port: str, shift: Shift | None, fits: Callable[[str], bool]) -> str:
    """Return the other end of a port by the other cables of its bundle; empty if unknown.

    Args:
        port: the port.
        shift: how the ports of the bundle follow from one another.
        fits: whether a cable may be absent at a port of the other end.
    """
    found = shift.move(port) if shift else ""
    return found if found and fits(found) else ""
