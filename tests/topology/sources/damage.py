"""Real texts, damaged: what strategies for parsers that must survive anything share."""

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
    for where, what, more in edits:
        at = int(where * len(text))
        end = text.find(b"\n", at) + 1 or len(text)
        match what:
            case "insert":
                text = text[:at] + more + text[at:]
            case "delete":
                text = text[:at] + text[at + len(more) :]
            case "flip":
                text = text[:at] + more[:1] + text[at + 1 :]
            case "cut line":
                text = text[:at] + text[end:]
            case _:
                text = text[:end] + text[at:end] + text[end:]
    return text
