"""A hypothesis strategy that damages real inputs, for parsers that must never raise."""

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

_EDITS = st.tuples(
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(("insert", "delete", "flip", "cut line", "repeat line")),
    st.binary(min_size=1, max_size=12),
)


def damaged(paths: Sequence[Path]) -> st.SearchStrategy[bytes]:
    """Draw one of the files with up to eight edits."""
    texts = [path.read_bytes() for path in paths]
    return st.builds(_edit, st.sampled_from(texts), st.lists(_EDITS, max_size=8))


def _edit(text: bytes, edits: list[tuple[float, str, bytes]]) -> bytes:
    for position, kind, insertion in edits:
        offset = int(position * len(text))
        end = text.find(b"\n", offset) + 1 or len(text)
        match kind:
            case "insert":
                text = text[:offset] + insertion + text[offset:]
            case "delete":
                text = text[:offset] + text[offset + len(insertion) :]
            case "flip":
                text = text[:offset] + insertion[:1] + text[offset + 1 :]
            case "cut line":
                text = text[:offset] + text[end:]
            case _:
                text = text[:end] + text[offset:end] + text[end:]
    return text
