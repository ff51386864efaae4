"""Text as the tool prints it is read in blocks, with the result of its lines one by one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.damage import damaged
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.plain import case_id, cases
from topology.sources.ibnetdiscover.columns import SweepColumns
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.parser import RowParser
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

BOM = b"\xef\xbb\xbf"
LEAF = "00a0000000000001"
HCA = "00b0000000000010"
PLAIN = f"""#
# Topology file: generated on Mon Jan  5 10:00:00 2026
#

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xa0000000000001
switchguid=0xa0000000000001(a0000000000001)
Switch\t65 "S-{LEAF}"\t\t# "MF0;leaf1:MQM9700/U1" enhanced port 0 lid 3 lmc 0
[7]\t"H-{HCA}"[1](b0000000000011) \t\t# "n1 mlx5_0" lid 9 4xNDR
[8]\t"S-00a0000000000002"[8]\t\t# "MF0;leaf2:MQM9700/U1" lid 4 ??NDR

vendid=0x2c9
devid=0x1021
caguid=0xb0000000000010
Ca\t1 "H-{HCA}"\t\t# "n1 mlx5_0"
[1](b0000000000011) \t"S-{LEAF}"[7]\t\t# lid 9 lmc 0 "MF0;leaf1:MQM9700/U1" lid 3 4xNDR

vendid=0x2c9
caguid=0xb0000000000020
Ca\t1 "H-00b0000000000020"\t\t# "n2 mlx5_0"
"""


def parsed(raw: bytes, *, block_bytes: int = 512) -> RowParser:
    """Return the parser of a text; small blocks, so that plain and odd ones meet."""
    parser = RowParser("dump", block_bytes=block_bytes)
    parser.read(raw)
    parser.close()
    return parser


def result(parser: RowParser) -> tuple[object, ...]:
    """Return the devices and the errors of a parser."""
    return tuple(SweptDevices(SweepColumns.sort(parser.rows))), tuple(map(str, parser.errors))


def agree(raw: bytes) -> None:
    """Compare the result of a text with that of its lines one by one.

    A blank before each line makes it unusual, and changes nothing.
    """
    by_line = parsed(raw.removeprefix(BOM).replace(b"\n", b"\n "))
    assert result(parsed(raw)) == result(by_line)


def is_plain(text: str) -> bool:
    """Return whether a text is read as one block."""
    return parsed(text.encode(), block_bytes=1 << 18).num_unusual == 0


def test_it_reads_a_canonical_dump_as_rows() -> None:
    found = parsed(PLAIN.encode())
    rows = found.rows
    assert rows.letters.tobytes() == b"SHH"
    assert rows.nodes.tolist() == [0, 0, 1]
    assert rows.numbers.tolist() == [7, 8, 1]
    assert [f"{guid:016x}" for guid in rows.peers] == [HCA, "00a0000000000002", LEAF]
    assert found.num_unusual == 0
    agree(PLAIN.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("n1 mlx5_0", "n1\n", id="a description that ends the line"),
        pytest.param('# "n1 mlx5_0"', "# n1 mlx5_0", id="a description without quotes"),
        pytest.param("4xNDR", "4xZDR", id="an unknown rate"),
        pytest.param("n1 mlx5_0", 'n1 "x" lid 3', id="quotes in a description"),
        pytest.param("[8]", "[7]", id="a port listed twice"),
        pytest.param("[8]", "[]", id="a port without a number"),
        pytest.param("[8]\t", "[1234]\t", id="a port with four digits"),
        pytest.param("[8]\t", " [8]\t", id="an indented line"),
        pytest.param("lid 4", "lid -4", id="a negative LID"),
        pytest.param("(b0000000000011)", "(B0000000000011)", id="upper-case digits"),
        pytest.param("(b0000000000011)", "(ffffffffffffffff)", id="a port GUID of all ones"),
        pytest.param("(b0000000000011)", "()", id="empty parentheses"),
        pytest.param("(b0000000000011)", "(00000b0000000000011)", id="17 digits"),
        pytest.param(
            "vendid=0x2c9\n", "devid=0x1\nvendid=0x2c9\n", id="ids voided by a vendor line"
        ),
        pytest.param("devid=0x1021", "devid=0x1\ndevid=0x1021", id="an id line twice"),
        pytest.param('"S-00a0000000000002"', "S-00a0000000000002", id="lost quotes"),
        pytest.param("00a0000000000002", "00a00000<redacted>", id="a redacted peer"),
        pytest.param("00a0000000000002", "0" * 16, id="a peer with a zero GUID"),
        pytest.param("vendid=0x2c9\ndevid=0xd2f2", "vendid = 2c9", id="an unusual id line"),
        pytest.param(f'"S-{LEAF}"\t\t#', '"S-garbled"\t\t#', id="a garbled head"),
        pytest.param(
            f'"H-{HCA}"\t\t#', f'"H-{"f" * 16}"\t\t#', id="a GUID that identifies nothing"
        ),
        pytest.param(
            "\n\nvendid", "\nsrc/query_smp.c:196; umad failed\nvendid", id="a message of a library"
        ),
        pytest.param("\n\nvendid", "\n[9] cut\nvendid", id="a port line without quotes"),
    ],
)
def test_it_reads_other_text_line_by_line(old: str, new: str) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new)
    assert not is_plain(text)
    agree(text.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("n1 mlx5_0", "n\u00e9", id="a character beyond ASCII"),
        pytest.param("n1 mlx5_0", "n1\x1c ", id="control characters and blanks"),
        pytest.param("n1 mlx5_0", "", id="an empty description"),
        pytest.param("(b0000000000011)", "(00b0000000000011)", id="leading zeros"),
        pytest.param("\n\n", "\n# Chassis 1\n\n\n", id="more comments and blank lines"),
        pytest.param("\t\t# lid 9", "(a0000000000001) \t\t# lid 9", id="a far GUID and a LID"),
    ],
)
def test_it_reads_text_that_the_tool_may_print_in_blocks(old: str, new: str) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new)
    assert is_plain(text)
    agree(text.encode())


def test_it_sorts_the_ports_of_a_node() -> None:
    lines = PLAIN.splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if line.startswith("[7]"))
    lines[at : at + 2] = lines[at + 1], lines[at]
    assert is_plain("".join(lines))
    agree("".join(lines).encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("\n", "\r\n", id="CRLF"),
        pytest.param("#\n#", "\ufeff#\n#", id="a byte order mark"),
        pytest.param("\n\n", "\n", id="no blank lines"),
        pytest.param("[7]\t", "[7](1) \t", id="labels of a front panel"),
        pytest.param("[7]\t", "[7][ext 4]\t", id="external port numbers"),
        pytest.param("\t", "   ", id="blanks for tabs"),
        pytest.param("lid 9", "lid ", id="empty LIDs"),
        pytest.param("4xNDR", "", id="no rates"),
        pytest.param('# "n2 mlx5_0"\n', '# "n2 mlx5_0"', id="no end of the last line"),
    ],
)
def test_it_gives_the_same_result_for_common_deviations(old: str, new: str) -> None:
    raw = PLAIN.replace(old, new).encode()
    agree(raw)
    assert parsed(raw).errors == []


@pytest.mark.parametrize("path", cases("ibnetdiscover"), ids=case_id)
def test_it_gives_the_same_result_for_every_fixture(path: Path) -> None:
    agree(path.read_bytes())


@needs_samples
@pytest.mark.parametrize(
    "path", sorted(SAMPLES.glob("ibnetdiscover/*.txt")), ids=lambda path: path.stem
)
def test_it_gives_the_same_result_for_every_real_fabric(path: Path) -> None:
    agree(path.read_bytes())


@limits(max_examples=examples(200))
@given(damaged(cases("ibnetdiscover")))
def test_it_gives_the_same_result_for_damaged_files(raw: bytes) -> None:
    agree(raw)


@pytest.fixture(scope="module")
def sweep() -> bytes:
    """Return the sweep of a fabric that is parsed in several chunks."""
    spec = SyntheticSpec(FabricKind.RAIL, 64, rails=8, radix=32)
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec)))).encode()


def test_it_reads_a_large_sweep_without_an_unusual_line(sweep: bytes) -> None:
    for block_bytes in (1 << 10, 16 << 10, 1 << 20):
        found = parsed(sweep, block_bytes=block_bytes)
        assert found.num_unusual == 0
        assert result(found) == result(parsed(sweep))


@pytest.mark.parametrize(
    "spoiler",
    [
        pytest.param("noise\n", id="a bad line"),
        pytest.param("caguid=0xb0000000000099\n\n", id="a record without a head"),
        pytest.param("sysimgguid=0xb0000000000099\n", id="an id line before those of a record"),
        pytest.param('[9]\t"S-00a0000000000002"[9]\t\t# "x" lid 4 4xNDR\n', id="a lone port"),
        pytest.param(PLAIN, id="another dump"),
    ],
)
def test_an_unusual_line_changes_nothing_around_it(sweep: bytes, spoiler: str) -> None:
    middle = sweep.index(b"\n\n", len(sweep) // 2) + 2
    agree(sweep[:middle] + spoiler.encode() + sweep[middle:])


SMALL_SPEC = SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)
SMALL_SWEEP = render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(SMALL_SPEC))))
LINES = SMALL_SWEEP.splitlines(keepends=True)
PLACES = st.integers(0, len(LINES) - 1)


@limits(max_examples=examples(300))
@given(st.lists(st.tuples(PLACES, PLACES, st.integers(1, 12)), min_size=1, max_size=3))
def test_lines_that_are_pasted_elsewhere_give_the_same_result(
    pastes: list[tuple[int, int, int]],
) -> None:
    lines = list(LINES)
    for start, place, size in pastes:
        lines[place:place] = LINES[start : start + size]
    agree("".join(lines).encode())


def test_an_unusual_line_slows_down_only_the_lines_around_it(sweep: bytes) -> None:
    middle = sweep.index(b"\n\n", len(sweep) // 2) + 2
    found = parsed(sweep[:middle] + b"noise\n" + sweep[middle:], block_bytes=1 << 18)
    assert 0 < found.num_unusual * 8 < sweep.count(b"\n")


def test_a_repeated_sweep_equals_a_single_one(sweep: bytes) -> None:
    agree(sweep + b"\n" + sweep)
    assert result(parsed(sweep + b"\n" + sweep)) == result(parsed(sweep))


def test_devices_are_equal_in_any_order_of_reads(sweep: bytes) -> None:
    devices = parse_ibnetdiscover(sweep).devices
    every = tuple(devices)
    assert [devices[at] for at in range(len(every))] == list(every)
    assert [devices[at] for at in reversed(range(len(every)))] == list(reversed(every))
    assert devices[3:9] == every[3:9]
    with pytest.raises(IndexError):
        devices[len(every)]


def test_sweeps_are_equal_if_all_their_rows_are(sweep: bytes) -> None:
    devices = parse_ibnetdiscover(sweep).devices
    again = parse_ibnetdiscover(b"# another time\n" + sweep).devices
    assert isinstance(devices, SweptDevices)
    assert isinstance(again, SweptDevices)
    assert devices == again == tuple(devices)
    at = sweep.index(b"NDR")
    for changed in (
        sweep[:at] + b"HDR" + sweep[at + 3 :],
        sweep.replace(b"n1 mlx5_0", b"n2 mlx5_0"),
    ):
        others = parse_ibnetdiscover(changed).devices
        assert (devices == others) == (tuple(devices) == tuple(others))


def test_ids_are_those_of_the_devices(sweep: bytes) -> None:
    devices = parse_ibnetdiscover(sweep).devices
    assert isinstance(devices, SweptDevices)
    assert [devices.ids_at(index) for index in range(len(devices))] == [one.ids for one in devices]
