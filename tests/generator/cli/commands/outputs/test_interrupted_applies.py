"""`apply` that is cut off at any write, and again: the files are those of a run that was not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.outputs.hypernode.model import HyperNode
from generator.store.fabric_store import FabricStore
from tests.effort import first_of
from tests.generator.scenes import Scene, run
from topology.model.errors import StoreError
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec

BEFORE = SyntheticSpec(FabricKind.DUAL_HOMED, 24, radix=16, medium=Medium.ETHERNET)
AFTER = SyntheticSpec(FabricKind.DUAL_HOMED, 24, radix=10, medium=Medium.ETHERNET)
"""The same hosts on smaller leaves."""
BUDGET = "spec: {changeBudget: {nodesPercent: 100, domainsPercent: 100}}\n"
FABRIC = f"apiVersion: toponaut.io/v1alpha1\nkind: Fabric\nmetadata: {{name: default}}\n{BUDGET}"


def hypernodes(store: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (store / "hypernodes").iterdir()}


def cut_after(num: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `num` writes of HyperNodes succeed; the next ones fail, as after a kill."""
    left = [num]

    def limited(write: Callable[..., bool]) -> Callable[..., bool]:
        def run_limited(folder: FabricStore, *what: HyperNode | str | None) -> bool:
            if not left[0]:
                raise StoreError("killed")
            left[0] -= 1
            return write(folder, *what)

        return run_limited

    monkeypatch.setattr(FabricStore, "put", limited(FabricStore.put))
    monkeypatch.setattr(FabricStore, "remove", limited(FabricStore.remove))


@pytest.mark.parametrize("cut", first_of([3, 0, 1, 2, 4, 5, 6, 7], 2))
def test_it_ends_as_if_it_had_not_been_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    store = Scene.of(tmp_path / "before", BEFORE).store()
    (store / "fabrics").mkdir()
    (store / "fabrics" / "default.yaml").write_text(FABRIC)
    assert run("apply", "--store", store).code == ExitCode.OK
    shutil.rmtree(store / "neighborreports")
    shutil.copytree(
        Scene.of(tmp_path / "after", AFTER).store() / "neighborreports", store / "neighborreports"
    )
    whole = tmp_path / "whole"
    shutil.copytree(store, whole)
    assert run("apply", "--store", whole).code == ExitCode.OK
    with monkeypatch.context() as killed:
        cut_after(cut, killed)
        ran = run("apply", "--store", store)
        assert ran.code == ExitCode.INTERNAL, ran.out
    assert run("apply", "--store", store).code == ExitCode.OK
    assert hypernodes(store) == hypernodes(whole)
    records = [(root / "treerecords" / "default.yaml").exists() for root in (store, whole)]
    assert records == [True, True]
