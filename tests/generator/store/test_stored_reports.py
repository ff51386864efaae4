"""Reports of a cluster: newer fields are dropped, others refused, and all are weighed."""

from pathlib import Path

import pytest

from generator.store.kinds import REPORT_QUOTA, read_stored_report
from generator.store.object_folders import read_reports
from tests.generator.scenes import PAIRS, Scene
from topology.model.errors import ReportError
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import build_report, render_report
from topology.reports.packed_reports import pack_report, unpack_report


def test_it_reads_a_report_as_a_folder_does(tmp_path: Path) -> None:
    for report in read_reports(Scene.of(tmp_path, PAIRS).reports()).values:
        assert read_stored_report(render_report(unpack_report(report))) == report


def test_it_refuses_a_document_that_is_not_a_report_of_this_version() -> None:
    with pytest.raises(ReportError):
        read_stored_report({"apiVersion": "toponaut.io/v1", "kind": "NeighborReport"})


def test_it_leaves_out_the_fields_of_a_newer_version() -> None:
    document = render_report(build_report(Device(DeviceKind.HOST, "n1", ()), name="n1"))
    newer = {**document, "spec": {**document["spec"], "moods": ["calm"]}}
    assert read_stored_report(newer) == read_stored_report(document)


def weight(num_neighbors: int, num_ids: int, kind: DeviceKind = DeviceKind.HOST) -> int:
    ids = tuple(Id(IdKind.CHASSIS_ID, f"{number:04}") for number in range(num_ids))
    near = tuple(
        Neighbor(ids, f"n{number:04}", (), "", Source.LLDP) for number in range(num_neighbors)
    )
    port = Port("eth0", medium=Medium.ETHERNET, neighbors=near)
    report = build_report(Device(kind, "n1", (), (port,)), name="n1")
    return REPORT_QUOTA.weigh(pack_report(report))


@pytest.mark.parametrize("kind", [DeviceKind.HOST, DeviceKind.SWITCH])
def test_each_neighbor_and_each_of_its_ids_weighs(kind: DeviceKind) -> None:
    one = weight(1, 1, kind)
    assert weight(11, 1, kind) > one + 10 * 400
    assert weight(1, 31, kind) > one + 20 * 400


def test_a_host_with_more_neighbors_than_hosts_have_weighs_more_than_a_switch() -> None:
    usual, more = (weight(n, 1) - weight(n, 1, DeviceKind.SWITCH) for n in (16, 17))
    assert usual <= 0
    assert more == usual + 1500
