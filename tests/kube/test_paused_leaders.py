"""A leader that is stopped beyond its lease writes nothing after it goes on."""

import signal
from pathlib import Path

import pytest

from generator.kube.resources import HYPERNODES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import connecting
from tests.kube.observers import Observer
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]


@pytest.mark.long
def test_it_never_writes_against_its_successor(other_api: ApiServer, tmp_path: Path) -> None:
    cluster = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    with connecting(other_api) as transport, serving(cluster, tmp_path) as first:
        cluster.await_tree()
        with serving(cluster, tmp_path) as second:
            second.await_event("tree published")
            first.program.send_signal(signal.SIGSTOP)
            try:
                # Work is due while nobody leads, and the paused leader finds it when it goes on.
                gone, *_ = sorted(cluster.hypernodes())
                cluster.api.expect("DELETE", HYPERNODES.path(gone))
                second.await_event("leadership gained")
                cluster.await_tree()
                assert cluster.holder().startswith(second.name)
            finally:
                versions, before = cluster.versions(), cluster.num_writes()
                first.program.send_signal(signal.SIGCONT)
            observer = Observer(transport)
            with observer.watching():
                first.await_event("leadership lost")
                cluster.api.expect("DELETE", HYPERNODES.path(gone))
                cluster.await_that(lambda: gone in cluster.versions(), "it is written again")
                cluster.await_tree()
            assert cluster.holder().startswith(second.name)
            written = [one for one in cluster.writes(before) if one.resource == HYPERNODES.plural]
            # The parent drops the missing child, and takes it again.
            (parent,) = (one.name for one in cluster.hypernodes().values() if gone in one.children)
            assert [one.name for one in written] == [parent, gone, parent], "written by one replica"
            assert {name for name, at in cluster.versions().items() if at != versions[name]} == {
                gone,
                parent,
            }
    cluster.clear()
