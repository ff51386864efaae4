"""`plan`, `apply` and `approve` of a plan that is held because it is too large."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from generator.objects.tree_record import RecentChanges
from generator.objects.write_policy import parse_write_policy
from runtime.clock import utc_now
from tests.generator.folders import StoreFolder
from tests.generator.scenes import Ran, Scene, run
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec

SMALL = SyntheticSpec(FabricKind.DUAL_HOMED, 8, radix=8, medium=Medium.ETHERNET)

CUT = ExitCode.SKIPPED
"""The exit code of a successful command if the list of nodes lacks some hosts."""


class Store:
    """A store with correct HyperNodes, and a list of nodes that can be shortened."""

    def __init__(self, root: Path) -> None:
        self.scene = Scene.of(root, SMALL)
        self.root = self.scene.store()
        self.place = StoreFolder(self.root)
        self.nodes = self.scene.nodes()
        assert self.run("apply").code == ExitCode.OK

    def run(self, command: str, *words: object) -> Ran:
        return run(command, "--store", self.root, "--nodes", self.nodes, "-o", "json", *words)

    def cut(self, num: int) -> None:
        """Keep only the first nodes of the list."""
        document = yaml.safe_load(self.nodes.read_text())
        document["nodes"] = document["nodes"][:num]
        self.nodes.write_text(yaml.safe_dump(document))

    def files(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.place.hypernodes.iterdir()}

    def approved(self) -> str:
        return parse_write_policy(self.place.read_fabric()).approved_plan


def hash_in(ran: Ran) -> str:
    match = re.search(r"plan ([0-9a-f]{16}) ", ran.err)
    assert match, ran.err
    return match.group(1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_it_says_on_stderr_that_a_plan_can_be_applied(store: Store) -> None:
    store.cut(7)
    ran = store.run("plan")
    assert [row["op"] for row in ran.document] == ["update"]
    assert f"plan {hash_in(ran)} can be applied\n" in ran.err


def test_it_prints_a_held_plan_and_the_reason_and_applies_nothing_of_it(store: Store) -> None:
    nothing = store.run("plan")
    assert (nothing.code, nothing.document, nothing.err) == (ExitCode.OK, [], "")
    before = store.files()
    store.cut(4)
    planned, applied = store.run("plan"), store.run("apply")
    assert planned.code == CUT, "a held plan is an answer"
    assert {row["op"] for row in planned.document} >= {"delete"}
    assert "is held: 4 of 8 nodes would leave a domain, at most 2 may (10 %)" in planned.err
    assert (applied.code, applied.document) == (ExitCode.CHECK_FAILED, [])
    assert f"run this command again with --approve {hash_in(applied)}" in applied.err
    assert hash_in(planned) == hash_in(applied)
    assert store.files() == before


def test_it_applies_a_held_plan_whose_hash_is_given(store: Store) -> None:
    store.cut(4)
    planned = store.run("plan")
    ran = store.run("apply", "--approve", hash_in(planned))
    assert (ran.code, ran.document) == (CUT, planned.actions)
    assert store.run("plan").document == []


def test_it_applies_an_approved_plan_and_uses_up_the_approval(
    store: Store,
) -> None:
    store.cut(4)
    plan = hash_in(store.run("plan"))
    assert run("approve", plan, "--store", store.root).code == ExitCode.OK
    assert "is held and approved" in store.run("plan").err
    assert store.run("apply").code == CUT
    assert store.approved() == ""


@pytest.mark.parametrize("words", [("--approve", "0" * 16), ()])
def test_it_applies_nothing_if_another_plan_is_approved(
    store: Store, words: tuple[str, ...]
) -> None:
    before = store.files()
    store.cut(4)
    assert run("approve", "f" * 16, "--store", store.root).code == ExitCode.OK
    assert store.run("apply", *words).code == ExitCode.CHECK_FAILED
    assert store.files() == before
    assert store.approved() == "", "the approval of a plan that is not held ends"


def test_it_fails_if_an_approval_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "fabrics").touch()
    ran = run("approve", "f" * 16, "--store", tmp_path)
    assert (ran.code, ran.out) == (ExitCode.INTERNAL, "")
    assert "fabrics" in ran.err
    assert "is approved" not in ran.err


def test_it_applies_a_plan_within_the_budget_of_the_fabric(store: Store) -> None:
    store.place.write_fabric({"spec": {"changeBudget": {"nodesPercent": 50, "domainsPercent": 50}}})
    store.cut(4)
    assert store.run("apply").code == CUT


def test_it_names_an_invalid_budget_and_uses_the_default_budget(store: Store) -> None:
    store.place.write_fabric({"spec": {"changeBudget": {"nodesPercent": "half"}}})
    store.cut(4)
    ran = store.run("apply")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "spec.changeBudget" in ran.err


def test_it_applies_nothing_while_writing_is_paused(store: Store) -> None:
    store.place.write_fabric({"spec": {"paused": True}})
    before = store.files()
    store.cut(7)
    ran = store.run("apply")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "can be applied; writing is paused" in ran.err
    assert store.files() == before


def test_it_fails_if_it_cannot_read_whether_writing_is_paused(store: Store) -> None:
    store.place.fabrics.mkdir()
    (store.place.fabrics / "default.yaml").write_text("spec: {paused: tr")
    for command in ("plan", "apply"):
        ran = store.run(command)
        assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
        assert "default.yaml" in ran.err


def test_it_creates_nothing_before_half_of_the_listed_nodes_are_known(store: Store) -> None:
    for file in (*store.place.hypernodes.iterdir(), *store.place.records.iterdir()):
        file.unlink()
    document = yaml.safe_load(store.nodes.read_text())
    document["nodes"] += [{"name": f"other-{number}"} for number in range(9)]
    store.nodes.write_text(yaml.safe_dump(document))
    ran = store.run("apply")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "8 of 17 listed nodes are known" in ran.err
    assert store.run("apply", "--approve", hash_in(ran)).code == ExitCode.OK
    assert store.files()


@pytest.mark.parametrize(
    "words", [("apply", "--approve", "\x1b[31myes"), ("approve", "\x1b[31myes")]
)
def test_it_refuses_a_text_that_is_not_a_hash_even_if_no_plan_is_held(
    store: Store, words: tuple[str, ...]
) -> None:
    command, *rest = words
    listed = ("--nodes", store.nodes) if command == "apply" else ()
    ran = run(command, "--store", store.root, *listed, *rest)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert r"'\x1b[31myes' is not the hash of a plan" in ran.err
    assert store.place.read_fabric() is None


def test_a_record_of_a_clock_that_was_ahead_does_not_hold_plans_until_then(store: Store) -> None:
    ahead = utc_now() + timedelta(days=26_000)
    record = store.place.read_record().record
    assert record is not None
    recent = RecentChanges({"gone-1": int(ahead.timestamp()), "gone-2": int(ahead.timestamp())})
    store.place.write_record(record._replace(recent=recent))
    store.cut(7)
    assert "and 2 left one in the last 3600 s" in store.run("apply").err
    after = store.place.read_record().record
    assert after is not None
    assert after.tree == record.tree
    assert after.recent.moved.keys() == {"gone-1", "gone-2"}
    assert max(after.recent.moved.values()) <= utc_now().timestamp()
