"""The numpy parser gives the results of the line parser, and accepts all canonical text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.damage import damaged
from tests.topology.sources.plain import case_id, cases
from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.array_parser import parse_chunk
from topology.sources.ibnetdiscover.byte_words import NonCanonicalInput
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.columns import SweptDevices
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)

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


SMALL = NumpyReader(chunk_bytes=512, smallest_bytes=64)
"""Cuts even these dumps into pieces, so that plain and odd ones meet."""


def both(raw: bytes, fast: NumpyReader = SMALL) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return the result of each parser for an input, errors as text."""
    careful = parse_ibnetdiscover(raw, source="dump")
    return shown(careful), shown(parse_ibnetdiscover(raw, source="dump", fast=fast))


def shown(parsed: ParseResult) -> tuple[object, ...]:
    return tuple(parsed.devices), tuple(map(str, parsed.errors))


def is_plain(text: str) -> bool:
    """Return whether the numpy parser accepts a text as one chunk."""
    try:
        parse_chunk(text.encode(), 0, len(text.encode()))
    except NonCanonicalInput:
        return False
    return True


def test_it_accepts_a_canonical_dump() -> None:
    found = parse_chunk(PLAIN.encode(), 0, len(PLAIN))
    assert found.letters.tobytes() == b"SHH"
    assert found.num_rows.tolist() == [2, 1, 0]
    assert found.numbers.tolist() == [7, 8, 1]
    careful, fast = both(PLAIN.encode(), NumpyReader())
    assert fast == careful


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("n1 mlx5_0", "n1\n", id="a description that ends the line"),
        pytest.param('# "n1 mlx5_0"', "# n1 mlx5_0", id="a description without quotes"),
        pytest.param("4xNDR", "4xZDR", id="an unknown rate"),
        pytest.param("[8]", "[7]", id="a port listed twice"),
        pytest.param("[8]", "[]", id="a port without a number"),
        pytest.param("[8]\t", "[1234]\t", id="a port with four digits"),
        pytest.param("[8]\t", " [8]\t", id="an indented line"),
        pytest.param("lid 4", "lid -4", id="a negative LID"),
        pytest.param("lid 4", "lid 12345678", id="an overlong LID"),
        pytest.param("(b0000000000011)", "(B0000000000011)", id="upper-case digits"),
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
        pytest.param('# "n2 mlx5_0"\n', '# "n2 mlx5_0"', id="no end of the last line"),
        pytest.param(
            "\n\nvendid", "\nsrc/query_smp.c:196; umad failed\nvendid", id="a message of a library"
        ),
        pytest.param("\n\nvendid", "\n[9] cut\nvendid", id="a port line without quotes"),
    ],
)
def test_it_refuses_text_that_is_not_canonical(old: str, new: str) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new)
    assert not is_plain(text)
    careful, fast = both(text.encode())
    assert fast == careful


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("n1 mlx5_0", "n\u00e9", id="a character beyond ASCII"),
        pytest.param("n1 mlx5_0", 'n1 "x" lid 3', id="quotes in a description"),
        pytest.param("n1 mlx5_0", "n1\x1c ", id="control characters and blanks"),
        pytest.param("n1 mlx5_0", "", id="an empty description"),
        pytest.param("(b0000000000011)", "(ffffffffffffffff)", id="a port GUID of all ones"),
        pytest.param("(b0000000000011)", "(00b0000000000011)", id="leading zeros"),
        pytest.param("\n\n", "\n# Chassis 1\n\n\n", id="more comments and blank lines"),
        pytest.param("\t\t# lid 9", "(a0000000000001) \t\t# lid 9", id="a far GUID and a LID"),
    ],
)
def test_it_accepts_text_that_the_tool_may_print(old: str, new: str) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new)
    assert is_plain(text)
    careful, fast = both(text.encode())
    assert fast == careful


def test_it_sorts_the_ports_of_a_node() -> None:
    lines = PLAIN.splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if line.startswith("[7]"))
    lines[at : at + 2] = lines[at + 1], lines[at]
    assert is_plain("".join(lines))
    careful, fast = both("".join(lines).encode())
    assert fast == careful


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
    ],
)
def test_it_gives_the_same_result_for_common_deviations(old: str, new: str) -> None:
    careful, fast = both(PLAIN.replace(old, new).encode())
    assert fast == careful
    assert not fast[1]


@pytest.mark.parametrize("path", cases("ibnetdiscover"), ids=case_id)
def test_it_gives_the_same_result_for_every_fixture(path: Path) -> None:
    careful, fast = both(path.read_bytes())
    assert fast == careful


@needs_samples
@pytest.mark.parametrize(
    "path", sorted(SAMPLES.glob("ibnetdiscover/*.txt")), ids=lambda path: path.stem
)
def test_it_gives_the_same_result_for_every_real_fabric(path: Path) -> None:
    careful, fast = both(path.read_bytes())
    assert fast == careful


@limits(max_examples=examples(200))
@given(damaged(cases("ibnetdiscover")))
def test_it_gives_the_same_result_for_damaged_files(raw: bytes) -> None:
    careful, fast = both(raw)
    assert fast == careful


@pytest.fixture(scope="module")
def sweep() -> bytes:
    """Return the sweep of a fabric that is parsed in several chunks."""
    spec = SyntheticSpec(FabricKind.RAIL, 64, rails=8, radix=32)
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec)))).encode()


PIECES = NumpyReader(chunk_bytes=16 << 10, smallest_bytes=1 << 10)


def test_it_accepts_every_chunk_of_a_large_sweep(sweep: bytes) -> None:
    pieces = list(PIECES.read(sweep, 0, len(sweep)))
    assert len(pieces) > 2
    assert all(piece.columns is not None for piece in pieces)
    careful, fast = both(sweep, PIECES)
    assert fast == careful


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
    careful, fast = both(sweep[:middle] + spoiler.encode() + sweep[middle:], PIECES)
    assert fast == careful


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
    careful, fast = both("".join(lines).encode())
    assert fast == careful


def test_an_unusual_line_slows_down_only_its_chunk(sweep: bytes) -> None:
    middle = sweep.index(b"\n\n", len(sweep) // 2) + 2
    spoiled = sweep[:middle] + b"noise\n" + sweep[middle:]
    odd = [piece for piece in PIECES.read(spoiled, 0, len(spoiled)) if piece.columns is None]
    assert [len(sweep) > 16 * (piece.stop - piece.start) for piece in odd] == [True]


def test_a_repeated_sweep_equals_a_single_one(sweep: bytes) -> None:
    careful, fast = both(sweep + b"\n" + sweep, PIECES)
    assert fast == careful == both(sweep, PIECES)[0]


def test_devices_are_equal_in_any_order_of_reads(sweep: bytes) -> None:
    careful = parse_ibnetdiscover(sweep).devices
    devices = parse_ibnetdiscover(sweep, fast=PIECES).devices
    assert tuple(devices) == careful
    assert [devices[at] for at in range(len(careful))] == list(careful)
    assert [devices[at] for at in reversed(range(len(careful)))] == list(reversed(careful))
    assert devices[3:9] == careful[3:9]


def test_sweeps_are_equal_if_all_their_rows_are(sweep: bytes) -> None:
    devices = parse_ibnetdiscover(sweep, fast=PIECES).devices
    again = parse_ibnetdiscover(b"# another time\n" + sweep, fast=PIECES).devices
    assert isinstance(devices, SweptDevices)
    assert isinstance(again, SweptDevices)
    assert devices == again == tuple(devices)
    at = sweep.index(b"NDR")
    for changed in (
        sweep[:at] + b"HDR" + sweep[at + 3 :],
        sweep.replace(b"n1 mlx5_0", b"n2 mlx5_0"),
    ):
        others = parse_ibnetdiscover(changed, fast=PIECES).devices
        assert (devices == others) == (tuple(devices) == tuple(others))


def test_ids_are_those_of_the_devices(sweep: bytes) -> None:
    devices = parse_ibnetdiscover(sweep, fast=PIECES).devices
    assert isinstance(devices, SweptDevices)
    assert [devices.ids_at(index) for index in range(len(devices))] == [one.ids for one in devices]
