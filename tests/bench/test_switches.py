"""The benchmark of walks runs; how fast is its own business and no test's."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from generator.switches.targets import SnmpCredentials, Target
from tests.bench.switches import WrongWalkError, measure, measure_walks, render, text
from topology.sources.lldp_mib.tables import SYS_NAME, ColumnSpan, WalkRow


class Mute:
    """A session with a switch that returns only its name."""

    async def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
        """Yield the name, where it is asked for."""
        del target
        if span.contains((*SYS_NAME, 0)):
            yield (*SYS_NAME, 0), b"leaf01"


def test_it_walks_a_few_switches() -> None:
    found = measure_walks(num_switches=3, num_ports=4)
    assert render(found).keys() == set(found._fields)
    assert (found.num_switches, found.num_ports) == (3, 4)
    assert found.again_s < found.first_s
    assert text(found).startswith("3 switches of 4 ports by SNMP: walked in ")


def test_it_times_nothing_that_misses_a_neighbor() -> None:
    target = Target("127.0.0.1", 161, SnmpCredentials(community="cables"))
    with pytest.raises(WrongWalkError, match="ok, 0 neighbors"):
        asyncio.run(measure(Mute(), [target], num_ports=1))
