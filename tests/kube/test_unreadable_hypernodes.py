"""A HyperNode that cannot be read is never written: it is a conflict that is named."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES, RECORDS
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import DEADLINE_S, OFTEN, Cluster, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hypernodes.topology.volcano.sh"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


@contextmanager
def unchecked_names(api: ApiServer) -> Iterator[None]:
    """Let the CRD accept member names of any length, as a later version of it might."""
    crd = api.expect("GET", CRD)
    checked = json.dumps(crd["spec"])

    def write(spec: str) -> None:
        found = api.expect("GET", CRD)
        api.expect("PUT", CRD, found | {"spec": json.loads(spec)})

    loose = re.sub(r'"maxLength": 253, ', "", checked)
    assert loose != checked
    write(loose)
    try:
        yield
    finally:
        write(checked)


def replace_with_unreadable(
    cluster: Cluster, name: str, *, has_our_label: bool
) -> Mapping[str, Any]:
    """Replace a HyperNode by one with a member name that we do not read; return it."""
    path = HYPERNODES.path(name)
    taken = cluster.api.expect("GET", path)
    labels = taken["metadata"]["labels"] if has_our_label else {}
    # Longer than any name of an object: the CRD allows it, and we do not read it.
    member = {"type": "Node", "selector": {"exactMatch": {"name": "x" * 300}}}
    taken["metadata"] = {"name": name, "labels": labels}
    taken["spec"]["members"] = [member]
    cluster.api.expect("DELETE", path)
    with unchecked_names(cluster.api):
        wait_until(
            lambda: cluster.api.request("POST", HYPERNODES.path(), taken).message,
            deadline_s=DEADLINE_S,
            what="the loose schema is served",
        )
    return cluster.api.expect("GET", path)


def test_apply_names_a_record_and_list_rows_that_it_cannot_read(
    cluster: Cluster, tmp_path: Path
) -> None:
    assert cluster.toponaut("apply").code == ExitCode.OK
    before = cluster.versions()
    path = RECORDS.path("default")
    record = cluster.api.expect("GET", path)
    cluster.api.expect("PUT", path, record | {"spec": {"content": ["not a record"]}})
    nodes = tmp_path / "nodes.json"
    entries: list[dict[str, Any]] = [{"name": name} for name in cluster.scene.hosts]
    entries[0] |= {"ids": [{"type": "mac", "value": "zz"}]}
    entries[1] = {"nme": cluster.scene.hosts[1]}
    nodes.write_text(json.dumps({"nodes": entries}))
    ran = cluster.toponaut("apply", "--nodes", str(nodes), "-o", "json")
    assert cluster.versions() == before, ran.err
    assert ran.code == ExitCode.SKIPPED
    assert "TreeRecord default: " in ran.err
    assert "nodes[1] is left out" in ran.err
    healed = cluster.toponaut("apply", "-o", "json")
    assert (healed.code, healed.document) == (ExitCode.SKIPPED, [])
    assert cluster.toponaut("apply", "-o", "json").code == ExitCode.OK, "the record is written anew"
    assert cluster.versions() == before


def test_it_stays_as_it_is_while_all_others_are_written(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.toponaut("apply").code == ExitCode.OK
    labelled, bare, other, *_ = (one.name for one in cluster.hypernodes().values() if one.tier == 1)
    unreadable = (labelled, bare)
    before = [
        replace_with_unreadable(cluster, name, has_our_label=name == labelled)
        for name in unreadable
    ]

    def found() -> list[Mapping[str, Any]]:
        return [cluster.api.expect("GET", HYPERNODES.path(name)) for name in unreadable]

    cluster.api.expect("DELETE", HYPERNODES.path(other))
    ran = cluster.toponaut("apply", "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert all(f"HyperNode {name} is left out" in ran.err for name in unreadable)
    rows = {(row["op"], row["name"]) for row in ran.document}
    assert ("create", other) in rows
    assert not {name for _, name in rows} & set(unreadable)
    assert found() == before
    cluster.api.expect("DELETE", HYPERNODES.path(other))
    with serving(cluster, tmp_path, *OFTEN):
        # `await_that` would read all HyperNodes, and these cannot be read.
        wait_until(
            lambda: "" if other in cluster.versions() else "missing",
            deadline_s=DEADLINE_S,
            what="the other leaf is written",
        )
        wait_until(
            lambda: cluster.conditions().get("Ready") != "-ForeignHyperNodes",
            deadline_s=DEADLINE_S,
            what="they are named",
        )
        assert all(name in cluster.message("Ready") for name in unreadable)
        assert found() == before
        for name in unreadable:
            cluster.api.expect("DELETE", HYPERNODES.path(name))
        cluster.await_tree()
