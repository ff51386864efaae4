"""A sweep compared with hosts: the result follows changes, and only changed hosts are compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from generator.ingest.host_evidence import HostComparison, HostPort, HostPorts, read_host_ports
from generator.ingest.sweep_views import read_view
from tests.generator.ingest.swept_fabrics import DEVICES, FABRIC, HOSTS, SUBNET
from topology.model.claims import Claim, Origin
from topology.synthetic import report_claims

VIEW = read_view(Claim(device, Origin.SWEEP) for device in DEVICES)
TRUE = {claim.report: read_host_ports(claim.device) for claim in report_claims(FABRIC)}
OTHER = "fe80000000000bad"

ports = st.builds(
    HostPort,
    st.sampled_from([SUBNET, OTHER]),
    st.sampled_from([port.guid for rows in TRUE.values() for port in rows] + [77]),
    st.sampled_from([port.port_guid for rows in TRUE.values() for port in rows] + [0]),
)
clusters = st.dictionaries(
    st.sampled_from(HOSTS), st.lists(ports, min_size=1, max_size=3).map(tuple), max_size=8
)


def test_a_true_sweep_contradicts_nobody() -> None:
    check = HostComparison(VIEW, SUBNET).check(TRUE)
    assert (check.num_hosts, check.is_contradicted, check.text) == (16, False, "")
    assert HostComparison(VIEW, SUBNET).check({}).num_hosts == 0


def test_it_names_the_hosts_by_what_contradicts_them() -> None:
    first, second, third, *_ = HOSTS
    lying = {
        first: (HostPort(SUBNET, 77, 0),),
        second: (TRUE[third][0],),
        third: (TRUE[third][0]._replace(subnet=OTHER),),
    }
    check = HostComparison(VIEW, SUBNET).check({**TRUE, **lying})
    assert (check.missing, check.renamed, check.foreign) == ((first,), (second,), (third,))
    assert check.is_contradicted
    assert all(name in check.text for name in (first, second, third))


@given(st.lists(clusters, min_size=1, max_size=4))
def test_the_result_after_changes_is_that_of_a_new_comparison(rounds: list[HostPorts]) -> None:
    comparison = HostComparison(VIEW, SUBNET)
    for hosts in rounds:
        assert comparison.check(hosts) == HostComparison(VIEW, SUBNET).check(hosts)
