"""The parts of a run without the engine: its files, and the inputs that it found."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fuzz import __main__ as running
from tests.fuzz import corpus
from tests.fuzz.corpus import choose, read_corpus, unpack, write_corpus
from tests.fuzz.engine import watched
from tests.fuzz.targets import TARGETS, Target

BAD = b"bad"


@pytest.fixture
def fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fuzz").mkdir()
    monkeypatch.setattr(corpus, "FIXTURES", tmp_path)
    return tmp_path / "fuzz"


@pytest.fixture
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a parser `odd` that fails on BAD, and write failures to a folder of the test."""

    def run(raw: bytes) -> None:
        if BAD in raw:
            raise KeyError("x")

    monkeypatch.setattr(running, "TARGETS", {"odd": Target(run, lambda: [b"good"], 100)})
    monkeypatch.setattr(running, "ROOT", tmp_path)
    monkeypatch.setattr(running, "FAILURES", tmp_path / "failures")
    return tmp_path / "failures"


def test_it_stores_inputs_unchanged_and_without_duplicates(fixtures: Path) -> None:
    write_corpus("lldpdu", [b"\xff\0", b"a", b"a"])
    assert read_corpus("lldpdu") == [b"a", b"\xff\0"]
    file = fixtures / "lldpdu.txt"
    assert file.read_text() == "YQ==\n/wA=\n"
    file.write_text("# found on a Monday\nYQ==\n")
    assert read_corpus("lldpdu") == [b"a"]


def test_it_stores_inputs_that_reach_new_code() -> None:
    seed = next(iter(TARGETS["grpc"].seeds()))
    assert choose("grpc", [b"kept"], [seed, seed + b"\x0a\x00"])[0] == b"kept"
    assert seed not in choose("grpc", [], [seed])
    of_no_preset = b"\n\x02\x08\x63"
    assert choose("grpc", [], [seed, of_no_preset]) == [of_no_preset]


def test_it_saves_inputs_that_break_a_parser_and_drops_the_others(
    tmp_path: Path, failures: Path
) -> None:
    suspects = tmp_path / "suspects"
    suspects.mkdir()
    unpack(suspects, [b"slow", BAD])
    run = running.Run("odd")
    running.settle(run, suspects)
    assert (run.failures, run.innocent) == (1, 1)
    assert [file.read_bytes() for file in failures.iterdir()] == [BAD]
    assert list(suspects.iterdir()) == []


def test_it_tries_long_inputs_until_one_fails(failures: Path) -> None:
    run = running.Run("odd")
    running.try_stretched(run, [b"ok", BAD], seconds=60)
    assert run.failures == 1
    assert run.stretched > 1
    assert BAD in (failures / "odd-0").read_bytes()


def test_it_suspects_a_slow_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.engine.SUSPECT_CPU_S", -1.0)
    with pytest.raises(Exception, match="slow"):
        watched(lambda _raw: None)(b"")


def test_it_judges_one_input_again(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"any")
    result = CliRunner().invoke(running.main, ["--replay", str(file), "lldpdu"])
    assert (result.exit_code, result.output) == (0, "no problem found\n")
    assert CliRunner().invoke(running.main, ["--replay", str(file)]).exit_code == 2
