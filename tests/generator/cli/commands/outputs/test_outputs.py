"""`plan` and `apply` of the outputs other than HyperNodes, in a folder."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.reconcile.folder_outputs import FolderPublisher
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.outputs import PublishRequest
from generator.store.folder_lock import FolderLock
from tests.generator.folders import StoreFolder, parse_fabric_document
from tests.generator.scenes import PAIRS, Scene, run
from topology.model.errors import ConfigError
from topology.reports.fabric_status import fabric_head

LABELS = {"type": "labels"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with the reports of a small fabric."""
    return Scene.of(tmp_path / "scene", PAIRS).store()


def want(store: Path, *outputs: Mapping[str, object], **spec: object) -> None:
    document = fabric_head() | {"spec": {"outputs": list(outputs), **spec}}
    parse_fabric_document(document)
    StoreFolder(store).write_fabric(document)


def files(store: Path) -> list[str]:
    root = store / "outputs"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_apply_writes_every_output_and_plan_says_so(store: Path) -> None:
    want(store, {"type": "hypernode"}, LABELS, {"type": "slurm-tree"})
    planned = run("plan", "--store", store, "--check")
    assert planned.code == ExitCode.CHECK_FAILED
    assert "output labels Pending: 0 written, 1 to write" in planned.err
    assert files(store) == []
    applied = run("apply", "--store", store)
    assert applied.code == ExitCode.OK, applied.err
    assert "output slurm-tree Written: 1 written, 0 to write" in applied.err
    assert files(store) == ["labels/labels.yaml", "slurm-tree/topology.conf"]
    assert run("plan", "--store", store, "--check").code == ExitCode.OK
    want(store, {"type": "hypernode"}, LABELS)
    assert run("apply", "--store", store).code == ExitCode.OK
    assert files(store) == ["labels/labels.yaml"]


def test_no_server_starts_on_a_folder_while_apply_writes_its_outputs(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    want(store, {"type": "hypernode"}, LABELS)
    update, refused = FolderPublisher.update, list[str]()

    def update_beside_a_server(self: FolderPublisher, request: PublishRequest) -> OutputsOutcome:
        with pytest.raises(ConfigError) as error:
            FolderLock(store)
        refused.append(str(error.value))
        return update(self, request)

    monkeypatch.setattr(FolderPublisher, "update", update_beside_a_server)
    assert run("apply", "--store", store).code == ExitCode.OK
    assert refused
    FolderLock(store).release()


def test_apply_without_hypernodes_records_the_decision_alone(store: Path) -> None:
    want(store, LABELS, changeBudget={"nodesPercent": 0, "domainsPercent": 0})
    assert run("apply", "--store", store).code == ExitCode.OK
    opened = StoreFolder(store)
    record = opened.read_record().record
    assert record is not None
    assert record.tree is not None
    assert record.tree.nodes
    assert opened.read_hypernodes().values == ()
    before = (store / "outputs/labels/labels.yaml").read_text()
    lost = next(iter((store / "neighborreports").iterdir()))
    keep_host(store, lost.stem)
    held = run("apply", "--store", store)
    assert held.code == ExitCode.CHECK_FAILED
    assert "is held" in held.err
    assert (store / "outputs/labels/labels.yaml").read_text() == before


def test_apply_removes_the_hypernodes_when_other_outputs_replace_them(store: Path) -> None:
    assert run("apply", "--store", store).code == ExitCode.OK
    opened = StoreFolder(store)
    names = {row.name for row in opened.read_hypernodes().values}
    assert names
    want(store, LABELS, paused=True)
    assert run("apply", "--store", store).code == ExitCode.OK
    assert {row.name for row in opened.read_hypernodes().values} == names, "writing is paused"
    want(store, LABELS)
    planned = run("plan", "--store", store, "--check", "-o", "json")
    assert planned.code == ExitCode.CHECK_FAILED
    applied = run("apply", "--store", store, "-o", "json")
    assert applied.code == ExitCode.OK, applied.err
    assert opened.read_hypernodes().values == ()
    assert planned.actions == applied.document
    assert {(row["op"], row["name"]) for row in applied.document} == {
        ("delete", name) for name in names
    }
    assert run("plan", "--store", store, "--check").code == ExitCode.OK


def keep_host(store: Path, lost: str) -> None:
    """Remove a host: its report, and what switches hear of it."""
    (store / "neighborreports" / f"{lost}.yaml").unlink()
    for file in (store / "neighborreports").iterdir():
        report = json.loads(file.read_text())
        for port in report["spec"]["ports"]:
            heard = port.get("neighbors", [])
            port["neighbors"] = [row for row in heard if row.get("name") != lost]
        file.write_text(json.dumps(report))


def test_an_output_that_cannot_be_written_fails(store: Path) -> None:
    want(store, {"type": "hypernode"}, {"type": "kueue"})
    ran = run("apply", "--store", store)
    assert ran.code == ExitCode.INTERNAL
    assert "output kueue Refused" in ran.err
    assert "add an output of type labels" in ran.err
