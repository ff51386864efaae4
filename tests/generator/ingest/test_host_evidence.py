"""A sweep compared with what hosts report about themselves."""

from __future__ import annotations

from generator.ingest.host_evidence import HostPort, check_hosts, read_host_ports
from tests.generator.ingest.swept_fabrics import DEVICES, FABRIC, HOSTS, SUBNET, view_devices
from topology.synthetic import report_claims

VIEW = view_devices(DEVICES)
TRUE = {claim.report: read_host_ports(claim.device) for claim in report_claims(FABRIC)}
OTHER = "fe80000000000bad"


def test_a_true_sweep_contradicts_nobody() -> None:
    check = check_hosts(VIEW, SUBNET, TRUE)
    assert (check.num_hosts, check.is_contradicted, check.text) == (16, False, "")
    assert check_hosts(VIEW, SUBNET, {}).num_hosts == 0


def test_it_names_the_hosts_by_what_contradicts_them() -> None:
    first, second, third, *_ = HOSTS
    lying = {
        first: (HostPort(SUBNET, 77, 0),),
        second: (TRUE[third][0],),
        third: (TRUE[third][0]._replace(subnet=OTHER),),
    }
    check = check_hosts(VIEW, SUBNET, {**TRUE, **lying})
    assert (check.missing, check.renamed, check.foreign) == ((first,), (second,), (third,))
    assert check.is_contradicted
    assert all(name in check.text for name in (first, second, third))
