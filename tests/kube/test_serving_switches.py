"""`serve --kube --switches`: the neighbors of switches become reports, written when they change."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.kube.resources import REPORTS
from tests.generator.scenes import PAIRS, Scene
from tests.generator.server.test_switch_walks import COMMUNITY, write_list
from tests.generator.switches.snmp_agent import SnmpAgent
from tests.generator.switches.switchboard import mac, switch_rows
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


def test_it_writes_the_report_of_a_switch_once_and_deletes_it_when_another_answers(
    cluster: Cluster, tmp_path: Path
) -> None:
    path, other = (REPORTS.path(f"switch-{mac(number).hex()}") for number in (1, 2))

    def status(path: str) -> int:
        return cluster.api.request("GET", path).status

    with SnmpAgent(switch_rows(1, [(2, "")]), community=COMMUNITY) as agent:
        words = ("--switches", str(write_list(tmp_path, agent.port)), "--switch-period", "300ms")
        with serving(cluster, tmp_path, *words):
            cluster.await_that(lambda: status(path) == 200, "a report")
            cluster.await_that(
                lambda: "status" in cluster.api.expect("GET", path), "how it was walked"
            )
            first = cluster.api.expect("GET", path)
            asked = agent.num_asked
            cluster.await_that(lambda: agent.num_asked > asked + 20, "it was walked again")
            again = cluster.api.expect("GET", path)
            agent.tell(switch_rows(2, [(9, "")]))
            cluster.await_that(
                lambda: (status(path), status(other)) == (404, 200), "the other's report alone"
            )
    assert first["spec"]["device"]["name"] == "switch-1"
    assert json.dumps(first) == json.dumps(again)
