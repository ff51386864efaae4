"""No walk through the code gets longer than docs/architecture.md says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from generator.cli.group import cli
from generator.ingest.captures import CAPTURES, SWEEPS
from generator.ingest.inputs import Inputs
from generator.ingest.sources import Sources, read_inputs
from generator.observe.observation import observe_fabric
from generator.outputs.catalog import render_export
from generator.outputs.formats import ExportFormat, ExportSettings
from generator.reconcile.decision import Decision, DecisionKind, RoundState, decide
from generator.reconcile.desired import plan_tree_changes
from generator.reconcile.writer import carry_out
from generator.store.fabric_store import FabricStore, open_folder
from generator.store.kinds import read_stored_report
from runtime.progress import NO_PROGRESS
from tests.repository import ROOT
from tests.walks import walk_of
from topology.join.fabric_join import build_fabric
from topology.model.tree import TopologyTree

PACKAGES = ("generator.", "topology.")
ROW = re.compile(r"^\| (?P<walk>[^|]+) \| [^|]+ \| \d+ \| (?P<stays>\d+) \| \d+ \|$", re.MULTILINE)


class Scene(NamedTuple):
    """What the walks begin with."""

    folder: Path
    """As `toponaut simulate fabric` writes it."""
    report: Mapping[str, Any]
    inputs: Inputs
    tree: TopologyTree
    store: FabricStore
    decision: Decision
    """To write the tree to the store, which is empty."""
    sweep: Path
    """A file as `ibnetdiscover` prints it."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("walks") / "fabric"
    options = ["--hosts", "64", "--rails", "4", "--out", str(folder)]
    cli.main(["simulate", "fabric", *options], standalone_mode=False)
    report = json.loads((folder / "reports" / "node-0002.yaml").read_text())
    inputs = read_inputs(Sources(reports=folder / "reports", nodes=folder / "nodes.yaml"))
    observed = observe_fabric(inputs)
    assert observed is not None
    store = open_folder(folder / "store")
    planned = plan_tree_changes(observed.observation, store.read_hypernodes().values)
    record = store.read_record().record
    decision = decide(RoundState(planned, datetime(2026, 1, 1, tzinfo=UTC), record=record))
    assert decision.kind is DecisionKind.WRITE
    (sweep,) = (file for file in (folder / "ibnetdiscover").iterdir() if file.is_file())
    return Scene(folder, report, inputs, observed.observation.tree, store, decision, sweep)


WALKS: Mapping[str, Callable[[Scene], object]] = {
    "a report is decoded": lambda scene: read_stored_report(scene.report),
    "a file of a sweep becomes devices": lambda scene: CAPTURES[SWEEPS](scene.sweep, NO_PROGRESS),
    "claims become a fabric": lambda scene: build_fabric(
        (*scene.inputs.listed_claims, *scene.inputs.claims)
    ),
    "claims become a tree and findings": lambda scene: observe_fabric(scene.inputs),
    "a decided plan is written to a folder": lambda scene: carry_out(scene.decision, scene.store),
    "a tree becomes a Topology of Kueue": lambda scene: render_export(
        scene.tree, ExportFormat.KUEUE, ExportSettings()
    ),
}


COMMAND: Final = "`toponaut findings`, from the options to the last line"


def read_limits() -> dict[str, int]:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {row["walk"]: int(row["stays"]) for row in ROW.finditer(page)}


@pytest.mark.parametrize("walk", WALKS)
def test_no_walk_is_longer_than_the_page_says(walk: str, scene: Scene) -> None:
    stays = walk_of(PACKAGES, lambda: WALKS[walk](scene))
    assert 1 < len(stays) <= read_limits()[walk]


def test_no_command_walks_longer_than_the_page_says(scene: Scene) -> None:
    words = ["findings", "--reports", str(scene.folder / "reports")]
    words += ["--nodes", str(scene.folder / "nodes.yaml")]

    def run() -> None:
        cli.main(words, standalone_mode=False)

    run()  # imports what it needs
    stays = walk_of((*PACKAGES, "runtime."), run)
    assert 1 < len(stays) <= read_limits()[COMMAND]
