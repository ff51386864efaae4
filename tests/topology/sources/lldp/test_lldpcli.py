"""The results of `parse_neighbors` and `parse_chassis`; unusual documents are under fixtures/."""

import json

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.sources.damage import damaged
from tests.topology.sources.plain import FIXTURES, cases
from topology.model.facts import Capability, DeviceKind, Neighbor, Source
from topology.model.ids import Id, IdKind
from topology.sources.lldp.lldpcli import parse_chassis, parse_neighbors

MAC = "02:aa:00:00:00:11"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("interface", "name", "chassis", "port", "id", "type", "value", "ttl")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def leaf(value: object) -> list[dict[str, object]]:
    return [{"value": value}]


def one(port: dict[str, object] | None = None, *, via: str = "LLDP") -> Neighbor:
    """Return the only neighbor of a document whose port part is given."""
    chassis = {"id": [{"type": "mac", "value": MAC}], "name": leaf("leaf1")}
    entry = {"name": "eth0", "via": via, "chassis": [chassis], "port": [port or {}]}
    found = parse_neighbors(json.dumps({"lldp": [{"interface": [entry]}]}).encode())
    assert not found.errors
    ((name, (neighbor,)),) = found.ports
    assert name == "eth0"
    return neighbor


def port_id(kind: str, value: str) -> list[dict[str, str]]:
    return [{"type": kind, "value": value}]


@pytest.mark.parametrize(
    ("kind", "value", "descr", "name"),
    [
        pytest.param("ifname", "swp1", "to n1", "swp1", id="an interface name"),
        pytest.param("ifalias", "Uplink", "swp1", "Uplink", id="an alias"),
        pytest.param("local", "Ethernet0", "x", "Ethernet0", id="a local name"),
        pytest.param("local", "512", "xe-0/0/1", "xe-0/0/1", id="Juniper's index, named below"),
        pytest.param("local", "512", None, "512", id="an index only"),
        pytest.param("mac", MAC, "eth0", "eth0", id="a Linux sender"),
        pytest.param("mac", MAC, None, MAC, id="a MAC only"),
        pytest.param("local", "", "eth0", "eth0", id="a binary id that lldpcli lost"),
    ],
)
def test_it_names_the_far_port_as_its_owner_does(
    kind: str, value: str, descr: str | None, name: str
) -> None:
    port: dict[str, object] = {"id": port_id(kind, value)}
    if descr:
        port["descr"] = leaf(descr)
    assert one(port).port_name == name


@pytest.mark.parametrize(
    ("via", "source"),
    [
        ("LLDP", Source.LLDP),
        ("CDPv1", Source.CDP),
        ("CDPv2", Source.CDP),
        ("EDP", Source.OTHER),
        ("FDP", Source.OTHER),
        ("SONMP", Source.OTHER),
        ("", Source.OTHER),
    ],
)
def test_it_returns_the_protocol(via: str, source: Source) -> None:
    assert one(via=via).source is source


@pytest.mark.parametrize(
    ("sent", "ttl_s"),
    [("120", 120), ("0", 0), ("65535", 65535), ("99999", 65535), ("-1", None), ("", None)],
)
def test_it_reads_the_ttl_that_was_sent(sent: str, ttl_s: int | None) -> None:
    assert one({"ttl": leaf(sent)}).ttl_s == ttl_s


@pytest.mark.parametrize(
    "form",
    [
        '{{"lldp": [{{"interface": [{{"name": "eth0", "chassis": [{}]}}]}}]}}',
        '{{"lldp": {{"interface": {{"eth0": {{"chassis": {{"leaf1": {}}}}}}}}}}}',
    ],
    ids=["json0", "json"],
)
@pytest.mark.parametrize(
    ("sent", "capabilities"),
    [
        pytest.param(
            [{"type": "Router", "enabled": True}, {"type": "Bridge", "enabled": True}],
            (Capability.BRIDGE, Capability.ROUTER),
            id="a switch that routes",
        ),
        pytest.param(
            [{"type": "Bridge", "enabled": False}, {"type": "Station", "enabled": True}],
            (Capability.STATION,),
            id="a host that could be a bridge",
        ),
        pytest.param({"type": "Tel", "enabled": True}, (Capability.TELEPHONE,), id="only one"),
        pytest.param([], (), id="none"),
        pytest.param(
            [{"type": "Bridge", "enabled": "true"}, {"type": ["Router"], "enabled": True}, 7],
            (),
            id="other types",
        ),
        pytest.param([{"type": "Unknown", "enabled": True}], (), id="a word of the future"),
    ],
)
def test_it_reads_the_capabilities_that_are_enabled(
    form: str, sent: object, capabilities: tuple[Capability, ...]
) -> None:
    chassis = json.dumps({"id": {"type": "mac", "value": MAC}, "capability": sent})
    parsed = parse_neighbors(form.format(chassis).encode())
    assert [neighbor.capabilities for _, (neighbor,) in parsed.ports] == [capabilities]


def test_it_does_not_derive_the_kind_because_capabilities_mislead() -> None:
    assert one().kind is DeviceKind.UNKNOWN


def test_it_reads_both_forms_alike() -> None:
    json0 = one({"id": port_id("ifname", "swp1"), "ttl": leaf("120")})
    entry = {
        "via": "LLDP",
        "chassis": {"leaf1": {"id": {"type": "mac", "value": MAC}}},
        "port": {"id": {"type": "ifname", "value": "swp1"}, "ttl": "120"},
    }
    for interface in ({"eth0": entry}, [{"eth0": entry}]):
        found = parse_neighbors(json.dumps({"lldp": {"interface": interface}}).encode())
        assert (found.form, found.ports) == ("json", (("eth0", (json0,)),))


def test_it_finds_no_neighbors_in_json_without_an_error() -> None:
    found = parse_neighbors(b'{"lldp": {}}')
    assert (found.form, found.ports, found.errors) == ("json", (), ())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="nested too deep"),
        pytest.param("1" * 10_000, id="a number too long"),
        pytest.param('{"lldp": 1}', id="lldp is a number"),
        pytest.param("[]", id="a list"),
        pytest.param("null", id="null"),
        pytest.param('{"lldp-added": {}}', id="a document of watch"),
    ],
)
def test_it_refuses_other_documents_in_one_error(text: str) -> None:
    found = parse_neighbors(text.encode(), source="file")
    assert (found.ports, found.form, len(found.errors)) == ((), "", 1)
    assert str(found.errors[0]).startswith("file:")
    assert parse_chassis(text.encode())[0] is None


@pytest.mark.parametrize(
    "interface",
    [
        pytest.param("[7]", id="an entry that is a number"),
        pytest.param('{"eth0": 7}', id="an interface that is a number"),
        pytest.param('{"eth0": {"chassis": {"leaf1": 7}}}', id="a chassis that is a number"),
        pytest.param('{"eth0": {"chassis": {}}}', id="a chassis without a name and an id"),
        pytest.param('{"": {"chassis": {"leaf1": {}}}}', id="an empty port name"),
    ],
)
def test_it_skips_only_the_broken_entry_of_json(interface: str) -> None:
    good = '{"eth9": {"chassis": {"leaf9": {}}, "port": {}}}'
    for text in (f"[{interface}, {good}]", f"[{good}, {interface}]"):
        found = parse_neighbors(f'{{"lldp": {{"interface": {text}}}}}'.encode())
        assert [name for name, _ in found.ports] == ["eth9"]
        assert len(found.errors) == 1


def test_a_byte_that_lldpcli_replaced_is_not_an_error() -> None:
    text = '{"lldp": {"interface": {"eth0": {"chassis": {"n\ufffdud": {}}, "port": {}}}}}'
    found = parse_neighbors(text.encode())
    assert (found.errors, found.ports[0][1][0].device_name) == ((), "n\ufffdud")


def test_it_keeps_text_encodable() -> None:
    text = '{"lldp": {"interface": {"eth0": {"chassis": {"\\ud800": {}}, "port": {}}}}}'
    ((_, (neighbor,)),) = parse_neighbors(text.encode()).ports
    assert neighbor.device_name == "\ufffd"


def test_it_skips_an_entry_with_an_overlong_port_name() -> None:
    entry = {"name": "1" * 5000, "chassis": [{}], "port": [{}]}
    found = parse_neighbors(json.dumps({"lldp": [{"interface": [entry]}]}).encode())
    assert (found.ports, len(found.errors)) == ((), 1)


@pytest.mark.parametrize("is_json0", [True, False], ids=["json0", "json"])
def test_it_returns_the_local_chassis(is_json0: bool) -> None:  # noqa: FBT001 - a table's column
    own_id = {"type": "mac", "value": MAC}
    inner = {"id": [own_id], "descr": leaf("Debian"), "name": leaf("n1")}
    inner["mgmt-ip"] = [*leaf("10.0.0.1"), *leaf("fe80::1")]
    flat = {"id": own_id, "descr": "Debian", "mgmt-ip": ["10.0.0.1", "fe80::1"]}
    chassis = [{"chassis": [inner]}] if is_json0 else {"chassis": {"n1": flat}}
    device, errors = parse_chassis(json.dumps({"local-chassis": chassis}).encode())
    assert not errors
    assert device is not None
    assert (device.kind, device.name, device.model) == (DeviceKind.UNKNOWN, "n1", "Debian")
    assert device.ids == (
        Id(IdKind.CHASSIS_ID, MAC, "mac"),
        Id(IdKind.HOSTNAME, "n1"),
        Id(IdKind.IP, "10.0.0.1"),
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param('{"lldp":[{}]}', id="neighbors"),
        pytest.param('{"local-chassis":[{"chassis":[{}]}]}', id="neither id nor name"),
        pytest.param('{"local-chassis":[]}', id="no chassis"),
    ],
)
def test_it_reports_a_missing_local_chassis(text: str) -> None:
    device, errors = parse_chassis(text.encode())
    assert (device, len(errors)) == (None, 1)


def _documents() -> st.SearchStrategy[bytes]:
    return JSON.flatmap(
        lambda inner: st.sampled_from(
            ({"lldp": inner}, {"lldp": [inner]}, {"lldp": {"interface": inner}})
        )
    ).map(lambda document: json.dumps(document).encode())


@limits(max_examples=examples(200))
@given(st.one_of(st.binary(max_size=200), _documents(), damaged(cases("lldpcli"))))
def test_it_never_raises_on_any_input(raw: bytes) -> None:
    found = parse_neighbors(raw)
    for _, neighbors in found.ports:
        for neighbor in neighbors:
            assert neighbor.device_ids == tuple(sorted(set(neighbor.device_ids)))
    assert found.form or found.errors


@limits(max_examples=examples(200))
@given(
    st.one_of(
        st.binary(max_size=200), JSON.map(lambda v: json.dumps({"local-chassis": v}).encode())
    )
)
def test_it_never_raises_on_any_chassis(raw: bytes) -> None:
    device, errors = parse_chassis(raw)
    assert device or errors


def test_it_keeps_every_neighbor_except_broken_ones() -> None:
    raw = (FIXTURES / "lldpcli" / "broken-entries" / "input.json0").read_bytes()
    assert [name for name, _ in parse_neighbors(raw).ports] == ["eth3", "eth4"]
