"""`toponaut simulate fabric`: its files agree, and appear completely or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.simulation.fabric_files import exchange, write_folder
from runtime.program import Interrupted
from tests.generator.scenes import partition, run
from topology.model.errors import ConfigError, WriteError
from topology.model.facts import Medium
from topology.reports.neighbor_report import parse_report
from topology.synthetic import FabricKind

SUBNETS = ("fe80000000000000", "fe80000000000001")
DAMAGE = ("--lose-links", "1%", "--swap", "1", "--silent", "5%", "--lose-switch", "1")


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def without_times(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: re.sub(rb'"observedAt": "[^"]*"', b"", raw) for name, raw in files.items()}


def test_it_dates_the_reports_so_that_a_server_finds_them_fresh(tmp_path: Path) -> None:
    simulate(tmp_path / "fabric", "--hosts", 16)
    words = ("--reports", tmp_path / "fabric" / "reports", "--period", "1m")
    assert run("findings", *words).out == "no findings\n"


def simulate(out: Path, *words: object) -> dict[str, bytes]:
    ran = run("simulate", "fabric", "--radix", 16, "--rails", 4, "--out", out, *words)
    assert ran.code == ExitCode.OK, ran.err
    assert ran.out == ""
    return files_of(out)


@pytest.mark.parametrize("medium", [Medium.INFINIBAND, Medium.ETHERNET])
def test_it_writes_every_form_of_a_damaged_fabric(tmp_path: Path, medium: Medium) -> None:
    out = tmp_path / "fabric"
    options = ("--kind", FabricKind.RAIL, "--medium", medium, "--hosts", 32, "--sysfs-hosts", 2)
    files = simulate(out, *options, *DAMAGE)
    truth = json.loads(files["truth.json"])
    tops = {name.split("/")[0] for name in files}
    tools = {"ibnetdiscover", "lldpcli", "snmpwalk", "sysfs"}
    assert tops == {"truth.json", "nodes.yaml", "reports"} | tools
    assert len({name.split("/")[1] for name in files if name.startswith("sysfs/")}) == 2
    silent = {
        fault["ports"][0]["device"] for fault in truth["faults"] if fault["kind"] == "silent-node"
    }
    assert len(silent) == 2
    reports = {
        Path(name).stem: parse_report(json.loads(text))
        for name, text in files.items()
        if name.startswith("reports/")
    }
    assert all(name == report.metadata.name for name, report in reports.items())
    assert not silent & reports.keys()
    has_sweep = any(".sweep." in name for name in reports)
    has_switches = any(name.startswith("switch-") for name in reports)
    assert (has_sweep, has_switches) == (medium is Medium.INFINIBAND, medium is Medium.ETHERNET)


@pytest.mark.parametrize(
    ("medium", "sources"),
    [(Medium.INFINIBAND, ("reports", "ibnetdiscover")), (Medium.ETHERNET, ("reports",))],
)
@pytest.mark.parametrize("kind", FabricKind)
def test_every_form_gives_the_true_tree(
    tmp_path: Path, kind: FabricKind, medium: Medium, sources: tuple[str, ...]
) -> None:
    out = tmp_path / "fabric"
    options = ("--kind", kind, "--medium", medium, "--hosts", 32, "--silent", "5%")
    simulate(out, *options, "--lose-links", "1%", "--sysfs-hosts", 0)
    truth = json.loads((out / "truth.json").read_bytes())
    for source in sources:
        given = [out / source] if source == "reports" else sorted((out / source).iterdir())
        words = [word for path in given for word in (f"--{source}", path)]
        ran = run("tree", *words, "--nodes", out / "nodes.yaml", "-o", "json")
        assert ran.code == ExitCode.OK, ran.err
        assert partition(ran.document) == partition(truth)


def test_it_sweeps_every_plane_separately(tmp_path: Path) -> None:
    files = simulate(tmp_path / "fabric", "--kind", "dual-plane", "--lose-host", 1)
    sweeps = [files[f"ibnetdiscover/{subnet}.txt"] for subnet in SUBNETS]
    assert [(b"leaf-p01-g01-a" in text, b"leaf-p01-g01-b" in text) for text in sweeps] == [
        (True, False),
        (False, True),
    ]
    reports = [
        parse_report(json.loads(text)).spec.sweep
        for name, text in files.items()
        if ".sweep." in name
    ]
    assert {sweep.subnet for sweep in reports if sweep} == set(SUBNETS)


def test_it_gives_equal_files_for_equal_options_and_others_for_another_seed(tmp_path: Path) -> None:
    words = ("--hosts", 32, *DAMAGE, "--seed")
    first = simulate(tmp_path / "one", *words, 7)
    assert without_times(simulate(tmp_path / "two", *words, 7)) == without_times(first)
    assert simulate(tmp_path / "three", *words, 8)["truth.json"] != first["truth.json"]


@pytest.mark.parametrize("seed", [-1, 1 << 63])
def test_it_refuses_a_seed_out_of_its_range_with_the_range(seed: int, tmp_path: Path) -> None:
    ran = run("simulate", "fabric", "--hosts", 8, "--seed", seed, "--out", tmp_path / "fabric")
    assert ran.code == ExitCode.USAGE
    assert f"'{seed}' is not a whole number from 0 to {(1 << 63) - 1}" in ran.err


def test_it_hides_positions_behind_opaque_names(tmp_path: Path) -> None:
    files = simulate(tmp_path / "fabric", "--hosts", 16, "--names", "opaque")
    assert b"leaf-p" not in files[f"ibnetdiscover/{SUBNETS[0]}.txt"]


def test_it_replaces_only_an_earlier_simulation_and_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    before = simulate(out, "--hosts", 8)
    ran = run("simulate", "fabric", "--hosts", 16, "--out", out)
    assert (ran.code, "use --force to replace it" in ran.err) == (ExitCode.USAGE, True)
    assert files_of(out) == before
    assert simulate(out, "--hosts", 16, "--force") != before
    assert [path.name for path in tmp_path.iterdir()] == ["fabric"]


@pytest.mark.parametrize("name", ["notes.txt", "reports"])
def test_it_never_replaces_a_folder_with_other_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    ran = run("simulate", "fabric", "--out", tmp_path, "--force")
    assert (ran.code, "use a new folder" in ran.err) == (ExitCode.USAGE, True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_it_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    ran = run("simulate", "fabric", "--out", tmp_path / "link", "--force")
    assert ran.code == ExitCode.USAGE


def test_it_accepts_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "fabric").mkdir()
    assert simulate(tmp_path / "fabric", "--hosts", 8)


def test_it_leaves_nothing_behind_when_it_fails(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield "truth.json", "{}"
        raise ConfigError("no more")

    with pytest.raises(ConfigError, match="no more"):
        write_folder(failing(), tmp_path / "out", force=False, on_file=lambda _: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [ConfigError("no more"), OSError(28, "full"), Interrupted(2)])
def test_it_removes_the_parent_folders_that_it_created(
    failure: BaseException, tmp_path: Path
) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield "truth.json", "{}"
        raise failure

    (tmp_path / "before").mkdir()
    with pytest.raises((ConfigError, WriteError, Interrupted)):
        write_folder(
            failing(), tmp_path / "before/new/newer/out", force=False, on_file=lambda _: None
        )
    assert list(tmp_path.rglob("*")) == [tmp_path / "before"]


class _FailingRename(type(Path())):  # type: ignore[misc]  # the class depends on the system
    """A path to which nothing new can be moved."""

    def rename(self, target: Path) -> Path:
        if self.name == "new":
            raise Interrupted(2)
        return super().rename(target)  # type: ignore[no-any-return]


def test_it_keeps_an_earlier_simulation_until_the_new_one_is_in_its_place(tmp_path: Path) -> None:
    simulate(tmp_path / "fabric", "--hosts", 8)
    before = files_of(tmp_path)
    out = _FailingRename(tmp_path / "fabric")
    scratch = _FailingRename(tmp_path)
    (scratch / "new").mkdir()
    with pytest.raises(Interrupted):
        exchange(out, new=scratch / "new", old=scratch / "old")
    assert files_of(tmp_path) == before


def test_it_counts_the_files_as_they_are_written(tmp_path: Path) -> None:
    seen: list[int] = []
    files = [("a/b", "1"), ("a/c", "2"), ("d", "3")]
    assert write_folder(files, tmp_path / "out", force=False, on_file=seen.append) == 3
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(("--hosts", "0"), "not a whole number from 1", id="no host"),
        pytest.param(("--radix", "5"), "even radix", id="an odd radix"),
        pytest.param(("--tiers", "1"), "expected 2 to 4 tiers", id="too many tiers"),
        pytest.param(("--tiers", "2", "--hosts", "9999"), "do not fit", id="too many hosts"),
        pytest.param(("--lose-links", "1"), "is not a share such as 1%", id="an ambiguous share"),
        pytest.param(("--swap", "999999"), "can be swapped", id="too many swaps"),
        pytest.param(("--lose-switch", "999"), "expected to lose", id="too many switches"),
        pytest.param(("--lose-rank", "1"), "needs --lose-switch", id="a rank of no switch"),
        pytest.param(("--medium", "nvlink"), "is not one of", id="a medium without leaves"),
    ],
)
def test_it_refuses(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    ran = run("simulate", "fabric", "--hosts", "64", "--out", tmp_path / "fabric", *words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert why in ran.err
    assert list(tmp_path.iterdir()) == []
