"""Outputs of real fabrics and devices: counts that were taken by hand."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.ibnetdiscover.printed_rows import printed
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.sources.lldp.lldpcli import parse_chassis, parse_neighbors

pytestmark = needs_samples

# file: switches, hosts' CAs, aggregation nodes, links
FABRICS = {
    "psmn-x5_qdr-ddr.txt": (11, 89, 0, 159),
    "stage_fdr10.txt": (8, 144, 0, 192),
    "topograph_ndr_dgx.txt": (40, 542, 40, 1114),
    "topograph_no-link.txt": (0, 1, 0, 0),
    "ufm_small_hdr-fdr.txt": (2, 12, 1, 16),
    "selene-storage_hdr-edr.txt": (160, 1247, 0, 3286),
    "manpage_grouping.txt": (2, 4, 0, 7),
    "ibm-doc_two-hosts.txt": (1, 2, 0, 2),
    "ompi-list-2009_no-rates.txt": (1, 24, 0, 24),
    "superpod-dgxa100_hdr.txt": (206, 1130, 206, 3572),
    "hdr-60sw_default-names.txt": (60, 2, 0, 807),
    "edr-ring_4sw.txt": (4, 4, 4, 12),
    "own_ibsim_odd-names.txt": (2, 3, 0, 5),
    "xdr-router-Rt_fragment.txt": (0, 0, 0, 1),
}
# file: switches, hosts' CA ports, aggregation nodes' ports, links, ports without a link
PORT_ROWS = {
    "exporter_p-form_edr.txt": (3, 3, 0, 4, 2),
    "exporter_p-form_hdr.txt": (4, 1, 1, 3, 3),
    "own_ibsim_p-form_unlinked.txt": (2, 11, 1, 15, 44),
    "own_ibsim_stage_p-form.txt": (8, 145, 0, 192, 49),
}
NEIGHBORS = {
    "lldpcli/h3c_and_host-sees-host.json0": 3,
    "lldpcli/own_dumb-switch_host-view.json0": 3,
    "lldpcli/own_dumb-switch_leaf-view.json0": 3,
    "lldpcli/own_five-protocols.json0": 10,
    "lldpcli/own_five-protocols.json": 10,
    "lldpcli/own_oddities_64neigh.json0": 65,
    "lldpcli/own_setA_identity.json0": 8,
    "lldpcli/own_setA_identity.json": 8,
    "lldpcli/own_spine_48-leaves.json0": 48,
    "lldpcli/pica8_single.json": 1,
    "lldpcli/puppet_list-form.json": 1,
    "lldpcli/puppet_no-name.json": 1,
    "fabric/own16/spine01.neighbors.json0": 3,
    **{f"fabric/own16/leaf{k:02d}.neighbors.json0": 9 for k in range(1, 4)},
    **{f"fabric/own16/node{k:02d}.neighbors.json0": 2 for k in range(1, 13)},
}
OTHER_FORMS = {".xml": "xml", ".plain": "plain text"}
KEYVALUE_NEIGHBORS = {
    "cumulus-s4100_two-leaves": 2,
    "dedibox_minimal": 1,
    "nxos-two-leaves_and_hypervisor": 3,
    "own_five-protocols": 10,
    "own_oddities_64neigh": 65,
    "own_setA_identity": 8,
    "qfx5100_two-tors": 2,
    "qfx5200_breakout_masked": 1,
    "vlan-only": 0,
}


def fabric(name: str) -> bytes:
    return (SAMPLES / "ibnetdiscover" / name).read_bytes()


def _end(ids: tuple[Id, ...]) -> Id:
    return next(found for found in ids if found.kind in (IdKind.NODE_GUID, IdKind.PORT_GUID))


def links(devices: Sequence[Device]) -> Counter[frozenset[Id]]:
    """Return how often each unordered pair of ports occurs; in a whole fabric, each does twice."""
    return Counter(
        frozenset({_end(port.ids), _end(heard.port_ids)})
        for device in devices
        for port in device.ports
        for heard in port.neighbors
    )


@pytest.mark.parametrize("name", FABRICS)
def test_it_reads_a_real_fabric_whole(name: str) -> None:
    found = parse_ibnetdiscover(fabric(name))
    kinds = Counter(device.kind for device in found.devices)
    switches, hosts = kinds[DeviceKind.SWITCH], kinds[DeviceKind.HOST]
    counts = (switches, hosts, kinds[DeviceKind.AGGREGATION], len(links(found.devices)))
    assert counts == FABRICS[name]
    assert found.errors == ()


@pytest.mark.parametrize("name", [name for name in FABRICS if "fragment" not in name])
def test_both_ends_report_every_link_of_a_whole_fabric(name: str) -> None:
    assert set(links(parse_ibnetdiscover(fabric(name)).devices).values()) <= {2}


@pytest.mark.parametrize("name", [*FABRICS, *PORT_ROWS])
def test_a_real_fabric_survives_printing(name: str) -> None:
    devices = parse_ibnetdiscover(fabric(name)).devices
    text = printed(fabric(name))
    assert parse_ibnetdiscover(text).devices == devices
    assert printed(text) == text


@pytest.mark.parametrize("name", PORT_ROWS)
def test_it_reads_the_port_rows_of_a_real_fabric(name: str) -> None:
    found = parse_ibnetdiscover(fabric(name))
    kinds = Counter(device.kind for device in found.devices)
    unlinked = sum(not port.neighbors for device in found.devices for port in device.ports)
    hosts, aggregation = kinds[DeviceKind.HOST], kinds[DeviceKind.AGGREGATION]
    counts = (kinds[DeviceKind.SWITCH], hosts, aggregation, len(links(found.devices)), unlinked)
    assert counts == PORT_ROWS[name]


def test_only_the_row_where_a_file_of_port_rows_was_cut_is_bad() -> None:
    errors = {name: len(parse_ibnetdiscover(fabric(name)).errors) for name in PORT_ROWS}
    assert errors == dict.fromkeys(PORT_ROWS, 0) | {"own_ibsim_p-form_unlinked.txt": 1}


def test_a_redacted_dump_has_no_devices_and_an_error() -> None:
    found = parse_ibnetdiscover(fabric("ndr-split-2x_redacted-fragment.txt"))
    assert found.devices == ()
    assert len(found.errors) == 10


def test_every_host_of_the_ndr_fabric_with_a_set_name_has_it() -> None:
    found = parse_ibnetdiscover(fabric("topograph_ndr_dgx.txt"))
    hosts = [device for device in found.devices if device.kind is DeviceKind.HOST]
    assert sum(not host.name for host in hosts) == 69 + 3 + 2
    switches = [device for device in found.devices if device.kind is DeviceKind.SWITCH]
    assert all("-P1-IB" in switch.name and "/" not in switch.name for switch in switches)


@pytest.mark.parametrize("name", NEIGHBORS)
def test_it_counts_the_neighbors_of_a_real_device(name: str) -> None:
    found = parse_neighbors((SAMPLES / name).read_bytes())
    assert sum(len(neighbors) for _, neighbors in found.ports) == NEIGHBORS[name]
    assert found.errors == ()
    assert found.form == name.rpartition(".")[2]


def test_no_json_sample_is_forgotten() -> None:
    paths = [*SAMPLES.glob("lldpcli/*.json*"), *SAMPLES.glob("fabric/own16/*.neighbors.json*")]
    names = {str(path.relative_to(SAMPLES)) for path in paths}
    others = {"lldpcli/own_setA_identity.local-chassis.json0"}
    assert names == {*NEIGHBORS, *others, "lldpcli/own_oddities_64neigh_BROKEN.json"}


def test_json_broken_by_a_name_is_an_error() -> None:
    raw = (SAMPLES / "lldpcli" / "own_oddities_64neigh_BROKEN.json").read_bytes()
    found = parse_neighbors(raw)
    assert found.ports == ()
    assert "json0" in found.errors[0].problem


@pytest.mark.parametrize("name", ["own_five-protocols", "own_setA_identity"])
def test_both_json_forms_give_the_same_result(name: str) -> None:
    json0, json = (
        parse_neighbors((SAMPLES / "lldpcli" / f"{name}.{form}").read_bytes())
        for form in ("json0", "json")
    )
    assert json.ports == json0.ports


@pytest.mark.parametrize(("name", "count"), KEYVALUE_NEIGHBORS.items())
def test_every_neighbor_of_keyvalue_is_read(name: str, count: int) -> None:
    found = parse_neighbors((SAMPLES / "lldpcli" / f"{name}.keyvalue").read_bytes())
    assert sum(len(neighbors) for _, neighbors in found.ports) == count


@pytest.mark.parametrize("name", ["own_five-protocols", "own_setA_identity"])
def test_keyvalue_gives_the_result_of_json0(name: str) -> None:
    folder = SAMPLES / "lldpcli"
    found = parse_neighbors((folder / f"{name}.keyvalue").read_bytes())
    assert found.ports == parse_neighbors((folder / f"{name}.json0").read_bytes()).ports
    assert found.form == "keyvalue"


@pytest.mark.parametrize(("suffix", "form"), OTHER_FORMS.items())
def test_other_forms_are_refused_by_name(suffix: str, form: str) -> None:
    paths = sorted((SAMPLES / "lldpcli").glob(f"*{suffix}"))
    assert paths
    for path in paths:
        (error,) = parse_neighbors(path.read_bytes()).errors
        assert form in error.problem


@pytest.mark.parametrize("number", range(1, 13))
def test_it_returns_the_local_chassis_of_a_real_node(number: int) -> None:
    name = f"node{number:02d}"
    raw = (SAMPLES / "fabric" / "own16" / f"{name}.chassis.json0").read_bytes()
    device, errors = parse_chassis(raw)
    assert not errors
    assert device is not None
    assert device.name == name
    assert [found.subtype for found in device.ids if found.kind is IdKind.CHASSIS_ID] == ["mac"]
