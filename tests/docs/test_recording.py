"""The recording of the first commands shows what they print today."""

from pathlib import Path

from tests.docs.recording import FILE, draw_recording, keep_last_states


def test_the_recording_is_what_the_commands_print(tmp_path: Path) -> None:
    drawn = tmp_path / FILE.name
    draw_recording(drawn)
    assert drawn.read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8"), (
        "make screenshots records anew"
    )


def test_a_bar_of_progress_leaves_no_line() -> None:
    printed = "a\n\x1b[?25l- reading 10%\r\x1b[2K- reading 90%\n\x1b[?25h\r\x1b[1A\x1b[2Kb\nc\n"
    assert keep_last_states(printed) == "a\nb\nc"
