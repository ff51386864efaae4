"""No walk through the code gets longer than docs/architecture.md says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from generator.cli.group import cli
from generator.ingest.inputs import Inputs
from generator.ingest.sources import Sources, read_inputs
from generator.observe.observation import observe_fabric
from generator.outputs.catalog import render_export
from generator.outputs.formats import ExportFormat, ExportSettings
from generator.store.kinds import read_stored_report
from tests.repository import ROOT
from tests.walks import walk_of
from topology.join.fabric_join import build_fabric
from topology.model.tree import TopologyTree

PACKAGES = ("generator.", "topology.")
ROW = re.compile(r"^\| (?P<walk>[^|]+) \| [^|]+ \| \d+ \| (?P<stays>\d+) \| \d+ \|$", re.MULTILINE)


class Scene(NamedTuple):
    """What the walks begin with."""

    report: Mapping[str, Any]
    inputs: Inputs
    tree: TopologyTree


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("walks") / "fabric"
    options = ["--hosts", "64", "--rails", "4", "--out", str(folder)]
    cli.main(["simulate", "fabric", *options], standalone_mode=False)
    report = json.loads((folder / "reports" / "node-0002.yaml").read_text())
    inputs = read_inputs(Sources(reports=folder / "reports", nodes=folder / "nodes.yaml"))
    observed = observe_fabric(inputs)
    assert observed is not None
    return Scene(report, inputs, observed.observation.tree)


WALKS: Mapping[str, Callable[[Scene], object]] = {
    "a report is decoded": lambda scene: read_stored_report(scene.report),
    "claims become a fabric": lambda scene: build_fabric(
        (*scene.inputs.listed_claims, *scene.inputs.claims)
    ),
    "claims become a tree and findings": lambda scene: observe_fabric(scene.inputs),
    "a tree becomes a Topology of Kueue": lambda scene: render_export(
        scene.tree, ExportFormat.KUEUE, ExportSettings()
    ),
}


@pytest.mark.parametrize("walk", WALKS)
def test_no_walk_is_longer_than_the_page_says(walk: str, scene: Scene) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    limits = {row["walk"]: int(row["stays"]) for row in ROW.finditer(page)}
    stays = walk_of(PACKAGES, lambda: WALKS[walk](scene))
    assert 1 < len(stays) <= limits[walk]
