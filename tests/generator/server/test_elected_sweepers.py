"""The elected sweepers in the Fabric object: written only when the election changes."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.reconcile.settings import always_leader
from generator.reconcile.status import FabricStatusWriter
from generator.server.elected_sweepers import SweepElection
from tests.generator.folders import StoreFolder
from tests.generator.sweep_reports import NOW, PERIOD, A, node
from tests.packed_reports import packed
from topology.model.errors import ConfigError
from topology.reports.fabric_status import (
    FabricStatus,
    Sweeper,
    SweepRole,
    parse_fabric,
    render_fabric,
)
from topology.reports.neighbor_report import NeighborReport


class ElectionScene:
    """A store, and elections that write into it."""

    def __init__(self, root: Path) -> None:
        self.file = root / "fabrics" / "default.yaml"
        self.status = FabricStatusWriter(
            StoreFolder(root), now=lambda: NOW, is_leader=always_leader
        )
        self.election = SweepElection(self.status.write_sweepers, period=PERIOD, now=lambda: NOW)

    def hold(self, *reports: NeighborReport) -> dict[str, Any] | None:
        if self.election.read(self.status.read()):
            self.election.elect(packed(reports))
        return json.loads(self.file.read_text()) if self.file.exists() else None


@pytest.fixture
def place(tmp_path: Path) -> ElectionScene:
    return ElectionScene(tmp_path)


ELECTED = {"subnet": A, "node": "n1", "device": "mlx5_0", "port": 1, "role": "elected"}


def test_it_writes_the_elected_sweepers_for_agents(place: ElectionScene) -> None:
    assert place.hold(node("n1"), node("n2")) == {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "Fabric",
        "metadata": {"name": "default"},
        "status": {
            "sweepers": [ELECTED, ELECTED | {"node": "n2", "role": "spare"}],
            "sweeps": [],
            "witnesses": [],
        },
    }


def test_it_writes_nothing_without_a_subnet_or_without_a_change(place: ElectionScene) -> None:
    assert place.hold() is None
    place.hold(node("n1"))
    before = place.file.stat()
    for age in (1, 2):
        place.hold(node("n1", age=timedelta(minutes=age)))
    assert place.file.stat() == before


def test_it_keeps_the_elected_sweepers_after_a_restart(
    place: ElectionScene, tmp_path: Path
) -> None:
    place.hold(node("n5"))
    found = ElectionScene(tmp_path).hold(node("n1"), node("n5"))
    assert found is not None
    assert [one["node"] for one in found["status"]["sweepers"]] == ["n5", "n1"]


def test_it_keeps_all_other_fields_of_the_object(place: ElectionScene) -> None:
    place.file.parent.mkdir()
    place.file.write_text(
        "apiVersion: toponaut.io/v1alpha1\nkind: Fabric\n"
        "metadata: {name: default, labels: {a: b}}\n"
        "spec: {planes: [compute]}\nstatus: {generation: 7}\n"
    )
    found = place.hold(node("n1"))
    assert found is not None
    assert found["spec"] == {"planes": ["compute"]}
    assert found["metadata"] == {"name": "default", "labels": {"a": "b"}}
    assert found["status"]["generation"] == 7
    assert found["status"]["sweepers"] == [ELECTED]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no document"),
        pytest.param("", id="empty"),
        pytest.param("kind: Pod\n", id="of another kind"),
        pytest.param("a: 1\n---\nb: 2\n", id="more than one"),
        pytest.param("- 1\n", id="a list"),
    ],
)
def test_it_logs_an_unusable_object_once_and_leaves_it_unchanged(
    place: ElectionScene, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    place.file.parent.mkdir()
    place.file.write_text(text)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert not place.election.read(place.status.read())
    assert [one.message for one in caplog.records] == ["election failed"]
    assert place.file.read_text() == text


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"subnet": "x"}, id="no subnet"),
        pytest.param({"device": "-h"}, id="no device"),
        pytest.param({"port": 0}, id="no port"),
        pytest.param({"role": "king"}, id="no role"),
    ],
)
def test_a_reader_refuses_a_sweeper_with(wrong: dict[str, object]) -> None:
    document = render_fabric(FabricStatus())
    document["status"]["sweepers"] = [ELECTED | wrong]
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        parse_fabric(document)


def test_a_reader_ignores_fields_of_a_newer_writer() -> None:
    sweeper = Sweeper(subnet=A, node="n1", device="mlx5_0", port=1, role=SweepRole.ELECTED)
    status = FabricStatus(sweepers=(sweeper,))
    document = render_fabric(status, {"spec": {"x": 1}, "status": {"new": True}})
    document["status"]["sweepers"][0]["rank"] = 1
    assert parse_fabric(document) == status
