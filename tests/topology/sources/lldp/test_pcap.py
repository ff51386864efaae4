"""Files of frames: the frames in them, and files that are refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.lldp.frames import CASES, read_frame
from tests.topology.sources.plain import case_id
from topology.sources.lldp.pcap import SavedFrames, is_saved_frames, parse_saved_frames

(PLAIN,) = (read_frame(path) for path in CASES if case_id(path) == "well-formed")
OTHER = bytes.fromhex("01000ccccccc 02aa00000011 0020") + b"\0" * 40  # CDP's group


def capture(*frames: bytes, order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    rows = (struct.pack(f"{order}IIII", 0, 0, len(one), len(one)) + one for one in frames)
    return head + b"".join(rows)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_it_reads_captures_of_either_order_and_clock(order: str, magic: int) -> None:
    raw = capture(PLAIN, OTHER, PLAIN, order=order, magic=magic)
    assert is_saved_frames(raw)
    found = parse_saved_frames(raw)
    assert (found.num_frames, found.num_lldp, len(found.neighbors)) == (3, 2, 1)
    assert found.errors == ()


def test_it_reads_one_raw_frame() -> None:
    assert is_saved_frames(PLAIN)
    assert parse_saved_frames(PLAIN).neighbors == parse_saved_frames(capture(PLAIN)).neighbors


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        pytest.param(capture(PLAIN)[:-1], "the last frame is truncated", id="a truncated frame"),
        pytest.param(
            capture(PLAIN) + b"\0" * 9, "the last frame is truncated", id="a truncated record"
        ),
        pytest.param(capture()[:20], "file ends within its header", id="a truncated header"),
        pytest.param(capture(link=113), "link type 113 is not Ethernet", id="cooked frames"),
        pytest.param(
            bytes.fromhex("0a0d0d0a"), "convert a pcapng file with tshark -F pcap", id="pcapng"
        ),
    ],
)
def test_it_reports_a_file_that_it_cannot_read(raw: bytes, problem: str) -> None:
    errors = parse_saved_frames(raw, source="x").errors
    assert problem in str(errors[-1])


def test_it_skips_a_bad_frame_and_reports_it() -> None:
    found = parse_saved_frames(capture(PLAIN[:16], PLAIN), source="x")
    assert len(found.neighbors) == 1
    assert {error.source for error in found.errors} == {"x frame 1"}


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: capture(PLAIN) + tail))
def test_it_never_raises_on_any_input(raw: bytes) -> None:
    assert isinstance(parse_saved_frames(raw), SavedFrames)


@needs_samples
@pytest.mark.parametrize(
    ("name", "num_lldp", "num_neighbors"),
    [
        ("LLDP_and_CDP.pcap", 8, 2),
        ("3560_CDP.pcap", 0, 0),
        ("lldp-app-priority.pcap", 1, 1),
        ("lldp_mudurl.pcap", 2, 1),
        ("lldpd-fuzz-seed_lldp.0.raw", 1, 1),
        ("own_crafted_dst-macs.pcap", 2, 2),
    ],
)
def test_it_finds_the_neighbors_of_a_real_capture(
    name: str, num_lldp: int, num_neighbors: int
) -> None:
    found = parse_saved_frames((SAMPLES / "pcap" / name).read_bytes())
    assert found.errors == ()
    assert (found.num_lldp, len(found.neighbors)) == (num_lldp, num_neighbors)
