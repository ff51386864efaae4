"""Sources given together on the command line: never worse than each alone."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from tests.effort import IS_ALL
from tests.generator.scenes import PAIRS, RAILS, Ran, Scene, partition, run
from tests.shared_samples import SAMPLES, needs_samples
from topology.model.tree import render_tree
from topology.synthetic import derive_truth, render_snmpwalks

OWN16 = SAMPLES / "fabric" / "own16"
NUM_CABLES = 27
Words = tuple[object, ...]


def sources_of(scene: Scene, *, is_swept: bool) -> dict[str, Words]:
    """Return the options of every source of a scene."""
    for name, text in render_snmpwalks(scene.damaged):
        scene.write(f"walks/{name}", text)
    return {
        "reports": ("--reports", scene.reports()),
        "captures": ("--lldpcli", scene.captures()),
        "walks": ("--snmpwalk", scene.root / "walks"),
        "inventory": ("--nodes", scene.nodes()),
        "names of nodes": ("--nodes", scene.kube_nodes()),
        **({"sweep": ("--ibnetdiscover", scene.sweep())} if is_swept else {}),
    }


def are_one_command(names: Iterable[str]) -> bool:
    """Return whether sources fit into one command line and have a cable."""
    lists = {"inventory", "names of nodes"}
    return not lists <= set(names) and not set(names) <= lists


@pytest.fixture(scope="module", params=["rails of InfiniBand", "MLAG pairs of Ethernet"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    spec = RAILS if request.param.startswith("rails") else PAIRS
    return Scene.of(tmp_path_factory.mktemp("scene"), spec)


def findings_of(ran: Ran) -> Counter[str]:
    return Counter(row["kind"] for row in ran.document if row["kind"] != "guessed-kind")


def test_it_infers_the_true_tree_from_any_sources_together(scene: Scene) -> None:
    is_swept = scene.damaged.wiring.spec == RAILS
    sources = sources_of(scene, is_swept=is_swept)
    truth = partition(render_tree(derive_truth(scene.damaged)))
    worse = []
    sets = [names for count in (1, 2, len(sources) - 1) for names in combinations(sources, count)]
    commands = list(filter(are_one_command, sets))
    for names in commands if IS_ALL else commands[::6]:
        words = [word for name in names for word in sources[name]]
        tree = run("tree", *words, "-o", "json")
        findings = findings_of(run("findings", *words, "-o", "json"))
        if partition(tree.document) != truth or tree.document["unplaced"] or findings:
            worse.append(f"{' + '.join(names)}: {dict(findings)} {tree.err}")
    assert not worse, "\n".join(worse)


def parts_of_own16(folder: Path) -> dict[str, Words]:
    """Return sources of one real fabric: all captures, some of them, and walks."""
    globs = {
        "captures": "*.json0",
        "captures without a chassis": "*.neighbors.json0",
        "captures of switches": "[ls]*.neighbors.json0",
        "captures of some hosts": "node0[1-6].*.json0",
    }
    for name, pattern in globs.items():
        (folder / name).mkdir()
        for file in OWN16.glob(pattern):
            shutil.copy(file, folder / name)
    (folder / "half of the walks").mkdir()
    for file in OWN16.glob("leaf*.snmpwalk.txt"):
        shutil.copy(file, folder / "half of the walks")
    return {
        **{name: ("--lldpcli", folder / name) for name in globs},
        "walks": ("--snmpwalk", OWN16),
        "half of the walks": ("--snmpwalk", folder / "half of the walks"),
    }


@needs_samples
def test_it_compares_a_real_fabric_with_its_plan_from_any_sources_together(tmp_path: Path) -> None:
    sources = parts_of_own16(tmp_path)
    alone = {name: _diff(words) for name, words in sources.items()}
    assert alone["captures"]["asPlanned"] == alone["walks"]["asPlanned"] == NUM_CABLES
    for pair in combinations(sources, 2):
        if sources[pair[0]][0] == sources[pair[1]][0]:
            continue
        both = _diff((*sources[pair[0]], *sources[pair[1]]))
        assert both["asPlanned"] == max(alone[name]["asPlanned"] for name in pair), pair
        assert both["moves"] == [], pair


@needs_samples
def test_it_adds_no_finding_to_a_real_fabric_with_a_further_source() -> None:
    words = (("--lldpcli", OWN16), ("--snmpwalk", OWN16))
    alone = [findings_of(run("findings", *source, "-o", "json")) for source in words]
    both = findings_of(run("findings", *words[0], *words[1], "-o", "json"))
    assert set(both) <= set(alone[0]) | set(alone[1])
    assert both["one-sided-link"] == 0


def _diff(words: Words) -> dict[str, Any]:
    ran = run("diff", *words, "--cabling", OWN16 / "cabling.csv", "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    document: dict[str, Any] = ran.document
    return document
