"""A reported sweep gives the devices that its text gives, or is refused before it takes memory."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.ingest.sweeps import (
    MAX_CABLES,
    MAX_LOAD,
    SweepLoad,
    parse_stream,
)
from tests.effort import examples
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.errors import ReportError
from topology.model.facts import ParseResult
from topology.reports.sweep_parts import split_records
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SPECS = [
    SyntheticSpec(FabricKind.RAIL, 32, rails=4, radix=16),
    SyntheticSpec(FabricKind.FAT_TREE, 48, radix=8),
]


def text_of(spec: SyntheticSpec) -> bytes:
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec)))).encode()


def read(text: bytes, limit: SweepLoad = MAX_LOAD, *, size: int = 1 << 20) -> ParseResult:
    pieces = split_records(text[at : at + size] for at in range(0, len(text), size))
    stream = parse_stream(pieces, source="sweep", limit=limit)
    return ParseResult(stream.devices, tuple(stream.parser.errors))


def switch(number: int, *ports: str) -> str:
    head = f'Switch\t{len(ports)} "S-{number:016x}"\t\t# "s{number}" base port 0 lid 0 lmc 0'
    return "\n".join([head, *ports, "", ""])


def cable(port: int, peer: int, far: int) -> str:
    return f'[{port}]\t"S-{peer:016x}"[{far}]\t\t# "s{peer}" lid 0 4xNDR'


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind.value)
@settings(max_examples=examples(20))
@given(size=st.integers(100, 20_000))
def test_it_reads_what_an_agent_writes(spec: SyntheticSpec, size: int) -> None:
    text = text_of(spec)
    assert read(text, size=size) == parse_ibnetdiscover(text, source="sweep")


def test_it_reads_records_with_rows_of_ports_that_are_down() -> None:
    rows = "".join(f"SW 0 {port} 0x{2:016x} ?? ??? 's2'\n" for port in (1, 7))
    text = (switch(1, cable(1, 2, 1)) + switch(2, cable(1, 1, 1)) + rows).encode()
    expected = parse_ibnetdiscover(text, source="sweep")
    assert read(text).devices == expected.devices
    assert [len(device.ports) for device in expected.devices] == [1, 2]


def test_it_names_bad_lines_and_counts_the_others() -> None:
    errors = read(b"nothing\n" * 5000).errors
    assert len(errors) == 1002
    assert "5000" not in str(errors[0])
    assert str(errors[1000]) == "sweep: 4000 more lines are bad"


@pytest.mark.parametrize(
    ("text", "limit", "problem"),
    [
        pytest.param(switch(1) + switch(2), {"devices": 1}, "1 devices", id="devices"),
        pytest.param(switch(1) + switch(2), {"switches": 1}, "1 switches", id="switches"),
        pytest.param(
            switch(1, cable(1, 2, 1), cable(2, 2, 2)), {"rows": 1}, "1 rows", id="port lines"
        ),
        pytest.param(switch(1) + switch(2), {"texts": 1}, "1 texts", id="descriptions"),
        pytest.param(switch(1), {"text_bytes": 1}, "1 text bytes", id="long descriptions"),
        pytest.param("what\n\n" * 3, {"unusual_lines": 2}, "2 unusual lines", id="unknown lines"),
        pytest.param(
            switch(1, cable(1, 2, 1)),
            {"unconfirmed_rows": 0},
            "0 unconfirmed rows",
            id="a cable to a device without a record",
        ),
        pytest.param(
            switch(1, cable(1, 2, 1)) + switch(2, cable(1, 1, 2)),
            {"unconfirmed_rows": 1},
            "1 unconfirmed rows",
            id="two ends that name other ports",
        ),
    ],
)
def test_it_refuses_more_than_a_limit(text: str, limit: dict[str, int], problem: str) -> None:
    assert len(read(text.encode()).devices) <= 2
    with pytest.raises(ReportError, match=f"more than {problem}"):
        read(text.encode(), MAX_LOAD._replace(**limit))


def test_confirmed_cables_do_not_count_as_unconfirmed() -> None:
    for spec in SPECS:
        read(text_of(spec), MAX_LOAD._replace(unconfirmed_rows=0))


def test_two_records_of_a_device_count_as_one() -> None:
    assert len(read((switch(1) * 2).encode()).devices) == 1


def test_it_refuses_more_cables_than_a_device_has_ports() -> None:
    text = "".join(switch(number, cable(1, 9999, 1)) for number in range(1, MAX_CABLES + 2))
    with pytest.raises(ReportError, match="end at one device"):
        read(text.encode())


@given(
    st.binary(max_size=2000) | st.text(alphabet='SwCa[1]"-0 #\n\t', max_size=400).map(str.encode)
)
def test_it_raises_nothing_but_a_refusal(text: bytes) -> None:
    with suppress(ReportError):
        read(text, size=50)
