"""Every option with a value, under values that make no sense: exit code 2 and one plain sentence.

The options are taken from the commands themselves, so a new one is tried as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from generator.cli.option_types import (
    InputFile,
    InputFolder,
    OutputFile,
    WholeNumber,
)
from tests.ground.exit_rows import PROGRAMS, ROWS, commands

NOT_FINITE = ("nan", "NaN", "inf", "-inf", "infinity", "1e308", "1e309", "-1e308")
NOT_NUMBERS = ("", " ", "x", "0x10", "1_000", "1,5", "٣", "1 2", "--", "1" * 5000)
HUGE = ("9" * 20, "9" * 30, "-" + "9" * 30)
NUMBERS = (*NOT_FINITE, *NOT_NUMBERS, *HUGE, "-1", "9" * 12, "9" * 19)
DURATIONS = (*NUMBERS, "1", "nans", "infs", "1e308s", "-1s", "999999999h", "9" * 30 + "s", "8761h")
SHARES = (*NUMBERS, "101%", "nan%", "1", "-1%", "1e308%", "2")
NAMES = ("", " ", "A", "a b", "../a", "a/b", "-a", "a-", "a\n", "x" * 300)
BY_PARSER = {
    "parse_duration": (*DURATIONS, "0s"),
    "parse_delay": DURATIONS,
    "parse_size": (*NUMBERS, "1", "0B", "nanMiB", "-1MiB", "1e308GiB", "9" * 30 + "GiB"),
    "check_node_name": NAMES,
    "parse_argv": ("", " ", "'a", "'' b"),
    "parse_subnet": ("", "x", "fe80::1 x", "1" * 33),
    "parse_pattern": ("", "[", "a[]"),
    "parse_listen": (*NUMBERS, "a:65536", "a:-1", "a b:1"),
    "parse_api_url": (*NUMBERS, "http://10.0.0.1", "https://", "https://a@b", "https://a/b"),
    "parse_share": SHARES,
    "parse_since": (*NUMBERS, "2026-11", "2026-13-01", "2026-11-01T08:00:00", "1999-01-01", "now"),
    "_parse_load": (*SHARES, "0", "0.0001"),
    "parse_swaps": (*NUMBERS, "101%", "nan%", "-0.1"),
    "parse_namespace": NAMES,
    "parse_object_name": NAMES,
    "parse_label_prefix": NAMES,
}


def values_of(param: click.Parameter) -> tuple[str, ...]:
    """Return values that a parameter must refuse; empty if it takes any text."""
    if isinstance(param.type, WholeNumber):
        takes_long = param.type.bounds[1] > 10**12  # a seed
        return (*NOT_FINITE, *NOT_NUMBERS, *HUGE, "-1") if takes_long else NUMBERS
    parse = getattr(param.type, "func", None)
    return () if parse is None else BY_PARSER[parse.__name__]


def params() -> Iterator[tuple[str, click.Parameter]]:
    for name, command in commands():
        yield from ((name, param) for param in command.params)


PARAMS = list(params())
IDS = {(name, str(param.name)): param for name, param in PARAMS}
NUMERIC = [key for key, param in IDS.items() if values_of(param)]
FILES = [key for key, param in IDS.items() if isinstance(param.type, InputFile | InputFolder)]


def once_each(keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the first option of each name: those of equal name are declared once."""
    return list({name: (command, name) for command, name in reversed(keys)}.values())


def ran(key: tuple[str, str], value: str, inputs: dict[str, str], out: Path) -> Result:
    name, param = key
    program, *words = name.split()
    row, found = ROWS[name], IDS[key]
    own = [*words, *row.words.format(**inputs).split()]
    if row.output and found.name != row.output.lstrip("-"):
        own += [row.output, str(out / "out")]
    given = [f"{found.opts[0]}={value}"] if isinstance(found, click.Option) else ["--", value]
    if isinstance(found, click.Option) and not found.opts[0].startswith("--"):
        given = [f"--{param.replace('_', '-')}={value}"]
    return CliRunner().invoke(PROGRAMS[program], [*own, *given])


def check_refusal(result: Result, what: str) -> None:
    assert isinstance(result.exception, SystemExit), (what, result.exception)
    assert result.exit_code == 2, (what, result.output)
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith(("Error: ", "error: ")), last
    assert len(last) < 600, last


def test_it_bounds_every_number() -> None:
    unbounded = click.types.IntParamType, click.types.FloatParamType
    loose = [
        (name, param.name)
        for name, param in PARAMS
        if isinstance(param.type, unbounded) and not isinstance(param.type, WholeNumber)
    ]
    assert not loose


def test_it_names_the_true_problem_of_every_path_to_read() -> None:
    plain = [
        (name, param.name)
        for name, param in PARAMS
        if isinstance(param.type, click.Path)
        and param.type.exists
        and not isinstance(param.type, InputFile | InputFolder)
    ]
    assert not plain
    files = [
        (name, param.name)
        for name, param in PARAMS
        if name.startswith("toponaut ")
        and isinstance(param.type, click.Path)
        and not param.type.exists
        and not param.type.dir_okay
    ]
    assert all(isinstance(IDS[name, str(param)].type, OutputFile) for name, param in files)


@pytest.mark.parametrize("key", once_each(NUMERIC), ids=" ".join)
def test_it_refuses_numbers_in(
    key: tuple[str, str], inputs: dict[str, str], tmp_path: Path
) -> None:
    for value in values_of(IDS[key]):
        check_refusal(ran(key, value, inputs, tmp_path), value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", once_each(FILES), ids=" ".join)
def test_it_refuses_paths_in(key: tuple[str, str], inputs: dict[str, str], tmp_path: Path) -> None:
    is_folder = isinstance(IDS[key].type, InputFolder)
    loop, file, dangling = tmp_path / "loop", tmp_path / "file", tmp_path / "dangling"
    loop.symlink_to(loop)
    file.write_text("x")
    dangling.symlink_to(tmp_path / "nothing")
    problems = {
        str(loop): "Too many levels of symbolic links",
        str(file / "x"): "Not a directory",
        str(tmp_path / ("x" * 300)): "File name too long",
        str(tmp_path / "missing"): "does not exist",
        str(dangling): "does not exist",
        str(file if is_folder else tmp_path): "is a file" if is_folder else "is a folder",
    }
    for value, problem in problems.items():
        result = ran(key, value, inputs, tmp_path / "out")
        check_refusal(result, value)
        assert problem in result.stderr


PATHS = [key for key, param in IDS.items() if isinstance(param.type, click.Path)]


@pytest.mark.parametrize("key", once_each(PATHS), ids=" ".join)
def test_it_refuses_an_empty_path_in(
    key: tuple[str, str], inputs: dict[str, str], tmp_path: Path
) -> None:
    result = ran(key, "", inputs, tmp_path)
    check_refusal(result, "")
    assert "the path is empty" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything: run as another user")
@pytest.mark.parametrize("key", once_each(FILES), ids=" ".join)
def test_it_refuses_what_it_may_not_read_in(
    key: tuple[str, str], inputs: dict[str, str], tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    if isinstance(IDS[key].type, InputFolder):
        hidden.mkdir(mode=0)
    else:
        hidden.touch(mode=0)
    result = ran(key, str(hidden), inputs, tmp_path / "out")
    check_refusal(result, str(hidden))
    assert "not readable" in result.stderr


CONTENTS = {
    "nothing": b"",
    "blanks": b" \n\n",
    "zeros": bytes(4096),
    "bytes": bytes(range(256)) * 64,
    "a cut document": b'{"apiVersion": "toponaut.io/v1alpha1", "kind": "Neighb',
    "depth without end": b"[" * 100_000,
    "an endless line": b"x" * (1 << 20),
    "numbers that are none": b'{"nodes": [{"name": "n", "capacity": {"slots": 1e999}}]}',
}


@pytest.mark.parametrize("key", once_each(FILES), ids=" ".join)
def test_it_survives_any_content_of(
    key: tuple[str, str], inputs: dict[str, str], tmp_path: Path
) -> None:
    if ROWS[key[0]].waits:
        return  # it would serve
    for kind, content in CONTENTS.items():
        path = tmp_path / kind
        if isinstance(IDS[key].type, InputFolder):
            path.mkdir()
            for name in ("a.yaml", "a.neighbors.json0", "a.snmpwalk.txt"):
                (path / name).write_bytes(content)
        else:
            path.write_bytes(content)
        result = ran(key, str(path), inputs, tmp_path)
        assert result.exception is None or isinstance(result.exception, SystemExit), kind
        assert result.exit_code in {0, 2, 3, 4}
        if result.exit_code:
            assert result.stderr.strip()
            assert max(map(len, result.stderr.splitlines())) < 3000
