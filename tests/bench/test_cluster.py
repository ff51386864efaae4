"""The benchmark of a replica in a cluster runs; how fast is its own business and no test's."""

import pytest

from tests.bench.cluster import Effort, measure_cluster, text
from topology.model.facts import Medium


@pytest.mark.long
@pytest.mark.lab
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("kube")
def test_it_measures_a_small_cluster() -> None:
    said: list[str] = []
    found = measure_cluster(
        72, Medium.INFINIBAND, say=said.append, effort=Effort(calls=20, changes=2)
    )
    assert said[0] == "writing 72 nodes and 73 reports"
    assert (found.num_nodes, found.num_reports, found.num_hypernodes) == (72, 73, 3)
    assert found.rest_p99_s > 0
    assert text(found).startswith("72 nodes, 24 switches, 73 reports, 3 HyperNodes in a cluster:\n")
