"""gzip is unpacked in bounded memory; damage and cuts are named."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.store.local_files import MAX_RATIO, SMALL_BYTES, unpack_bytes
from tests.effort import examples
from topology.model.errors import CutInput, ParseError

LIMIT = 64 << 20


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3))
@settings(max_examples=examples(50))
def test_it_returns_what_was_packed(members: list[bytes]) -> None:
    packed = b"".join(map(gzip.compress, members))
    assert unpack_bytes(packed, LIMIT, source="x") == b"".join(members)


@given(st.binary(max_size=100).filter(lambda raw: not raw.startswith(b"\x1f\x8b")))
def test_it_returns_other_bytes_as_they_are(raw: bytes) -> None:
    assert unpack_bytes(raw, LIMIT, source="x") == raw


@given(st.integers(2, 400))
@settings(max_examples=examples(50))
def test_it_names_every_cut(length: int) -> None:
    packed = gzip.compress(bytes(range(256)) * 4)
    cut = unpack_bytes(packed[: min(length, len(packed) - 1)], LIMIT, source="x.gz")
    assert isinstance(cut, CutInput)
    assert str(cut) == "x.gz: the file is cut: its gzip has no end"


def test_it_refuses_damage() -> None:
    packed = bytearray(gzip.compress(b"facts" * 100))
    packed[-6] ^= 1
    assert isinstance(unpack_bytes(bytes(packed), LIMIT, source="x"), ParseError)


@pytest.mark.parametrize("limit", [1 << 30, 1 << 20], ids=["by its ratio", "by its size"])
def test_a_bomb_takes_no_more_memory_than_it_may(limit: int) -> None:
    packed = gzip.compress(bytes(60 << 20), 9)
    allowed = min(limit, max(SMALL_BYTES, MAX_RATIO * len(packed)))
    tracemalloc.start()
    try:
        refused = unpack_bytes(packed, limit, source="x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(refused) == f"x: unpacks to more than {allowed} bytes"
    assert peak < 3 * allowed + (1 << 20)


def test_it_keeps_the_content_once_while_it_unpacks() -> None:
    text = b"".join(b"leaf-%d port %d\n" % (at, at * 7919 % 100_003) for at in range(200_000))
    packed = gzip.compress(text, 1)
    tracemalloc.start()
    try:
        unpacked = unpack_bytes(packed, LIMIT, source="x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unpacked == text
    assert peak < 1.5 * len(text)


def test_it_reads_many_members_with_padding() -> None:
    packed = (gzip.compress(b"a") + b"\0" * 7) * 20_000
    assert unpack_bytes(packed, LIMIT, source="x") == b"a" * 20_000
