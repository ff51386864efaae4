"""What a command loads: for its help, for errors of usage, and until its first row.

The modules that a child process has loaded are counted, not its time: a machine that is busy must
not fail a test.
"""

import subprocess  # noqa: TID251 - a process of its own shows what a command loads
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from generator.cli.group import cli
from generator.history.history_file import HistoryWriter
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import run
from tests.repository import ROOT

REMOTE = (
    *("asyncio", "ssl", "rich", "grpc", "google", "pysnmp", "kubernetes", "urllib3"),
    *("cryptography", "starlette", "uvicorn", "apscheduler", "prometheus_client"),
)
"""What servers, clusters and switches need, and progress on a terminal."""
HEAVY = (*REMOTE, "numpy", "pydantic", "pydantic_core", "sqlite3")
"""None of them is needed to say which options there are."""
FABRIC = (*REMOTE, "sqlite3")
RENDERERS = ("generator.outputs.catalog", "generator.outputs.slurm", "generator.web")
ENGINE = ("generator.placement.engine", "generator.placement.solve", "generator.manifests")
GANG = str(ROOT / "fixtures" / "demo" / "gang.yaml")
SOURCES = ("--reports", "{folder}/fabric/reports", "--nodes", "{folder}/fabric/nodes.yaml")
FIRST_ROWS: dict[tuple[str, ...], list[tuple[str, ...]]] = {
    (*FABRIC, *RENDERERS, *ENGINE): [
        ("tree", *SOURCES),
        ("planes", *SOURCES),
        ("findings", *SOURCES),
        ("describe", "node", "node-0001", *SOURCES),
    ],
    (*FABRIC, *RENDERERS): [
        ("place", "-f", GANG, *SOURCES),
        ("place", "-f", GANG, "--translate"),
        ("compare", "-f", GANG, *SOURCES),
    ],
    (*FABRIC, *ENGINE): [
        ("export", "kueue", *SOURCES),
        ("plan", *SOURCES, "--observed", "{folder}/store/hypernodes"),
    ],
    (*FABRIC, "numpy", *RENDERERS, *ENGINE): [("lint", "{folder}/store/hypernodes")],
    (*REMOTE, "numpy", *RENDERERS, *ENGINE): [("reservations", "--store", "{folder}/store")],
    (*REMOTE, "numpy", "pydantic", *RENDERERS, *ENGINE): [("history", "--store", "{folder}/store")],
    (*REMOTE, "numpy", "sqlite3", *RENDERERS, *ENGINE): [("inspect", "{folder}/fabric/nodes.yaml")],
    (*REMOTE, "numpy", "sqlite3"): [
        ("simulate", "fabric", "--hosts", "4", "--out", "{folder}/new"),
        ("schema", "request"),
        ("explain", "swapped-cable"),
        ("explain", "fabric.spec"),
    ],
    HEAVY: [("completion", "bash")],
}
"""By the modules that their first rows do not need: commands."""


def list_paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command and of its subcommands."""
    yield path
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from list_paths(found, (*path, name))


PROGRAM = """
import sys
from generator.cli.group import cli
for arguments in {runs!r}:
    try:
        cli(arguments, prog_name="toponaut")
    except SystemExit as ended:
        print(ended.code, *sorted(sys.modules), file=sys.stderr)
"""


BUILT = """
import pydantic
import generator.cli.cluster_input, generator.cli.observation, generator.cli.plans
import generator.objects.reservation, generator.objects.tree_document
import generator.switches.targets, generator.switches.reports
models = [pydantic.BaseModel]
for model in models:
    models += model.__subclasses__()
own = [model for model in models if model.__module__.startswith(("generator", "topology"))]
print(len(own))
print(*[model.__name__ for model in own if model.__pydantic_complete__])
"""


def load(*runs: list[str], unneeded: tuple[str, ...], code: int = 0) -> None:
    """Run commands in one process; refuse modules that none of them needs, and other codes."""
    program = [sys.executable, "-c", PROGRAM.format(runs=runs)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    rows = [line.split() for line in ran.stderr.splitlines() if line[:1].isdigit()]
    for words, (ended, *modules) in zip(runs, rows, strict=True):
        assert (ended, {*unneeded} & {*modules}) == (str(code), set()), words


def test_no_help_loads_a_large_library() -> None:
    load(*([*path, "--help"] for path in list_paths(cli)), unneeded=HEAVY)


def test_an_error_of_usage_loads_no_large_library() -> None:
    load(["tree", "--depth", "none"], unneeded=HEAVY, code=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small fabric, and a store with its HyperNodes."""
    made = tmp_path_factory.mktemp("start")
    fabric = made / "fabric"
    assert run("simulate", "fabric", "--hosts", 16, "--rails", 2, "--out", fabric).code == 0
    assert run("apply", *put(SOURCES, made), "--store", made / "store").code == 0
    history = HistoryWriter(made / "store" / "history.sqlite")
    history.record(build_tree_of_shape("2x2x4"), (), 1_760_000_000)
    history.close()
    return made


def put(words: tuple[str, ...], folder: Path) -> list[str]:
    """Return words with the name of the folder."""
    return [word.format(folder=folder) for word in words]


@pytest.mark.parametrize("unneeded", FIRST_ROWS, ids=lambda unneeded: FIRST_ROWS[unneeded][0][0])
def test_a_command_loads_only_what_its_first_row_needs(
    unneeded: tuple[str, ...], folder: Path
) -> None:
    load(*(put(words, folder) for words in FIRST_ROWS[unneeded]), unneeded=unneeded)


def test_no_command_builds_a_validator_before_it_uses_it() -> None:
    program = [sys.executable, "-c", BUILT]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    models, built = ran.stdout.splitlines()
    assert int(models) > 50
    assert built == ""
