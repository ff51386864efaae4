"""The recording of the first commands shows what they print today."""

from pathlib import Path

from tests.docs.recording import FILE, draw_recording


def test_the_recording_is_what_the_commands_print(tmp_path: Path) -> None:
    drawn = tmp_path / FILE.name
    draw_recording(drawn)
    assert drawn.read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8"), (
        "make screenshots records anew"
    )
