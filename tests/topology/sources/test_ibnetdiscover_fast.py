"""The numpy reader makes the same of every input as the careful one, and takes what is plain."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits

from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.damage import damaged
from tests.topology.sources.plain import case_id, cases
from topology.facts import Parsed
from topology.sources.ibnetdiscover import parse_ibnetdiscover, render_ibnetdiscover
from topology.sources.ibnetdiscover_fast import NumpyReader
from topology.sources.ibnetdiscover_lines import read_chunks
from topology.synthetic import FabricKind, FabricSpec, build_wiring, sweep_devices, undamaged

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


def both(raw: bytes) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return what each reader makes of an input, errors as text."""
    careful = parse_ibnetdiscover(raw, source="dump")
    return shown(careful), shown(parse_ibnetdiscover(raw, source="dump", fast=NumpyReader()))


def shown(parsed: Parsed) -> tuple[object, ...]:
    return parsed.devices, tuple(map(str, parsed.errors))


def test_it_takes_a_plain_dump() -> None:
    records = NumpyReader()(PLAIN)
    assert records is not None
    assert [(record.letter, sorted(record.rows)) for record in records] == [
        ("S", [7, 8]),
        ("H", [1]),
        ("H", []),
    ]
    careful, fast = both(PLAIN.encode())
    assert fast == careful


@pytest.mark.parametrize("text", ["", "\n", "# a comment\n\n"])
def test_it_takes_what_holds_no_record(text: str) -> None:
    careful, fast = both(text.encode())
    assert fast == careful


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("n1 mlx5_0", "n\u00e9", id="a character beyond ASCII"),
        pytest.param("n1 mlx5_0", 'n1 "x"', id="a quote in a description"),
        pytest.param("n1 mlx5_0", "n1\x1c", id="a control character"),
        pytest.param("4xNDR", "4xZDR", id="an unknown rate"),
        pytest.param("[8]", "[7]", id="a port that stands twice"),
        pytest.param("[8]", "[]", id="a port without a number"),
        pytest.param("[8]\t", " [8]\t", id="an indented line"),
        pytest.param('"S-00a0000000000002"', "S-00a0000000000002", id="lost quotes"),
        pytest.param("00a0000000000002", "00a00000<redacted>", id="a redacted peer"),
        pytest.param("00a0000000000002", "0" * 16, id="a peer that is nobody"),
        pytest.param("vendid=0x2c9\ndevid=0xd2f2", "vendid = 2c9", id="an unusual id line"),
        pytest.param(f'"S-{LEAF}"\t\t#', '"S-garbled"\t\t#', id="a garbled head"),
        pytest.param(f'"H-{HCA}"\t\t#', f'"H-{"f" * 16}"\t\t#', id="the GUID of nobody"),
        pytest.param('# "n2 mlx5_0"\n', '# "n2 mlx5_0"', id="no end of the last line"),
        pytest.param("\n\nvendid", "\nsrc/query_smp.c:196; umad failed\nvendid", id="a complaint"),
        pytest.param("\n\nvendid", "\n[9] cut\nvendid", id="a port line without quotes"),
    ],
)
def test_it_hands_back_what_is_not_plain(old: str, new: str) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new)
    assert NumpyReader()(text) is None
    careful, fast = both(text.encode())
    assert fast == careful


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("\n", "\r\n", id="CRLF"),
        pytest.param("\n\n", "\n", id="no blank lines"),
        pytest.param("[7]\t", "[7](1) \t", id="labels of a front panel"),
        pytest.param("[7]\t", "[7][ext 4]\t", id="external port numbers"),
        pytest.param("\t", "   ", id="blanks for tabs"),
        pytest.param("lid 9", "lid ", id="empty LIDs"),
        pytest.param("4xNDR", "", id="no rates"),
    ],
)
def test_it_makes_the_same_of_usual_oddities(old: str, new: str) -> None:
    careful, fast = both(PLAIN.replace(old, new).encode())
    assert fast == careful
    assert not fast[1]


@pytest.mark.parametrize("path", cases("ibnetdiscover"), ids=case_id)
def test_it_makes_the_same_of_every_fixture(path: Path) -> None:
    careful, fast = both(path.read_bytes())
    assert fast == careful


@needs_samples
@pytest.mark.parametrize(
    "path", sorted(SAMPLES.glob("ibnetdiscover/*.txt")), ids=lambda path: path.stem
)
def test_it_makes_the_same_of_every_real_fabric(path: Path) -> None:
    careful, fast = both(path.read_bytes())
    assert fast == careful


@limits(max_examples=200)
@given(damaged(cases("ibnetdiscover")))
def test_it_makes_the_same_of_damaged_files(raw: bytes) -> None:
    careful, fast = both(raw)
    assert fast == careful


@pytest.fixture(scope="module")
def sweep() -> str:
    """Return the sweep of a fabric that is read in several pieces."""
    spec = FabricSpec(FabricKind.RAIL, 256, rails=8, radix=64)
    text = render_ibnetdiscover(sweep_devices(undamaged(build_wiring(spec))))
    assert len(list(read_chunks(text, 256 * 1024))) > 2
    return text


def test_it_takes_every_piece_of_a_large_sweep(sweep: str) -> None:
    reader = NumpyReader()
    assert all(reader(piece) is not None for _, piece in read_chunks(sweep, 64 * 1024))
    careful, fast = both(sweep.encode())
    assert fast == careful


@pytest.mark.parametrize(
    "spoiler",
    [
        pytest.param("noise\n", id="a bad line"),
        pytest.param("caguid=0xb0000000000099\n\n", id="a record without a head"),
        pytest.param("sysimgguid=0xb0000000000099\n", id="an id line before those of a record"),
        pytest.param(PLAIN, id="another dump"),
    ],
)
def test_a_line_that_is_not_plain_changes_nothing_around_it(sweep: str, spoiler: str) -> None:
    pieces = [piece for _, piece in read_chunks(sweep, 256 * 1024)]
    careful, fast = both((pieces[0] + spoiler + "".join(pieces[1:])).encode())
    assert fast == careful


def test_a_sweep_that_comes_twice_is_the_same_once(sweep: str) -> None:
    careful, fast = both((sweep + "\n" + sweep).encode())
    assert fast == careful == both(sweep.encode())[0]


def test_pieces_keep_the_text_and_the_numbers_of_its_lines() -> None:
    pieces = list(read_chunks(PLAIN, 1))
    assert "".join(piece for _, piece in pieces) == PLAIN
    assert [PLAIN.split("\n")[first - 1] for first, _ in pieces] == [
        piece.split("\n")[0] for _, piece in pieces
    ]
    assert len(pieces) == 4
