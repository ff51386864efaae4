"""NeighborReport: round trips, refusals, and sweeps split into parts."""

import random  # noqa: TID251 - text that does not compress
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.effort import examples
from topology.model.errors import ReportError
from topology.model.facts import (
    Capability,
    Device,
    DeviceKind,
    GpuDistance,
    Medium,
    Neighbor,
    Port,
    PortState,
    Source,
    sort_capabilities,
)
from topology.model.ids import Id, IdKind, natural_key
from topology.reports.neighbor_report import (
    MAX_RATE_BPS,
    MAX_TEXT,
    NeighborReport,
    SweepPart,
    build_report,
    parse_report,
    render_report,
)
from topology.reports.sweep_parts import (
    MAX_LINE_BYTES,
    PIECE_BYTES,
    split_records,
    split_sweep,
    unpack_sweep,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
MACS = st.integers(1, 2**24).map(lambda number: f"02:00:00:{number >> 16 & 255:02x}:00:01")
IDS = st.builds(Id, st.just(IdKind.HOSTNAME), TEXTS) | st.builds(Id, st.just(IdKind.MAC), MACS)
ID_SETS = st.frozensets(IDS, max_size=4).map(lambda found: tuple(sorted(found)))
NEIGHBORS = st.builds(
    Neighbor,
    ID_SETS,
    TEXTS,
    ID_SETS,
    TEXTS,
    st.sampled_from(Source),
    st.sampled_from(DeviceKind),
    st.none() | st.integers(0, 65535),
    st.frozensets(st.sampled_from(Capability)).map(sort_capabilities),
)
PORTS = st.builds(
    Port,
    name=TEXTS,
    ids=ID_SETS,
    medium=st.sampled_from(Medium),
    state=st.sampled_from(PortState),
    rate_bps=st.none() | st.integers(0, MAX_RATE_BPS),
    bond_master=st.none() | TEXTS,
    rdma_device=st.none() | TEXTS,
    pci_address=st.none() | TEXTS,
    gpu_distance=st.none() | st.sampled_from(GpuDistance),
    numa_node=st.none() | st.integers(0, 1023),
    firmware_lldp=st.none() | st.booleans(),
    subnet=st.none() | st.just("fe80000000000000"),
    neighbors=st.frozensets(NEIGHBORS, max_size=3).map(
        lambda found: tuple(sorted(found, key=repr))
    ),
)
DEVICES = st.builds(
    Device,
    st.sampled_from((DeviceKind.HOST, DeviceKind.SWITCH)),
    TEXTS,
    ID_SETS,
    st.lists(PORTS, max_size=3, unique_by=lambda port: port.name).map(
        lambda found: tuple(sorted(found, key=lambda port: (natural_key(port.name), port.name)))
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["device", "ports", "sweep", "kind", "ids", "name"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
HOST = Device(DeviceKind.HOST, "n1", (Id(IdKind.NODE_NAME, "n1"),))


@settings(max_examples=examples(60))
@given(DEVICES)
def test_it_returns_the_device_that_it_was_built_from(device: Device) -> None:
    report = build_report(device, name="n1")
    assert report.device == device
    assert parse_report(render_report(report)) == report


@settings(max_examples=examples(60))
@given(JSON, JSON, JSON)
def test_it_raises_only_report_errors_for_any_document(
    spec: object, status: object, other: object
) -> None:
    head = {"apiVersion": "toponaut.io/v1alpha1", "kind": "NeighborReport"}
    for document in (
        other,
        head | {"metadata": {"name": "n1"}, "spec": spec, "status": status},
        head | {"metadata": other, "spec": spec},
    ):
        with suppress(ReportError):
            assert isinstance(parse_report(document), NeighborReport)


def edited(edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    document = render_report(build_report(HOST, name="n1"))
    edit(document)
    return document


def port(**neighbor: object) -> dict[str, object]:
    """Return a port with a neighbor."""
    return {"name": "p", "medium": "ethernet", "neighbors": [{"source": "lldp", **neighbor}]}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param([], "got list", id="a list"),
        pytest.param(edited(lambda d: d.update(apiVersion="v2")), "of v2", id="another version"),
        pytest.param(edited(lambda d: d.update(kind="Pod\n")), r"Pod\\n", id="another kind"),
        pytest.param(
            edited(lambda d: d.update(extra=1)), "^extra: is not a known field$", id="unknown field"
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports=[{"name": "p", "medium": "tape"}])),
            "^spec.ports.0.medium: expected one of the known values, got 'tape'$",
            id="a word that is not in a closed set",
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports={})), "^spec.ports: expected a list$", id="map"
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports=[port(ttlSeconds="1")])),
            "^spec.ports.0.neighbors.0.ttlSeconds: expected an integer$",
            id="a text instead of an integer",
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports=[port(ttlSeconds=65536)])),
            "^spec.ports.0.neighbors.0.ttlSeconds: expected less than or equal to 65535$",
            id="a number that is too large",
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports=[port(portIds=[{}] * 65)])),
            "^spec.ports.0.neighbors.0.portIds: expected at most 64 items$",
            id="a list that is too long",
        ),
        pytest.param(
            edited(
                lambda d: d["spec"].update(
                    ports=[{"name": "p", "medium": "ethernet", "subnet": f"{1:016x}\n"}]
                )
            ),
            "^spec.ports.0.subnet: expected at most 16 characters$",
            id="a subnet with a line break",
        ),
        pytest.param(
            edited(lambda d: d["spec"]["device"].update(name="\ud800")),
            "^a text is not valid Unicode$",
            id="half a character",
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports=[{"name": "p", "rateBps": 10**40}])),
            "spec.ports.0.rateBps: expected less than or equal to",
            id="a rate that is too large",
        ),
        pytest.param(edited(lambda d: d["spec"].clear()), "exactly one", id="an empty spec"),
        pytest.param(
            edited(lambda d: d["spec"]["device"].update(name="x" * 513)),
            "device.name",
            id="a name that is too long",
        ),
        pytest.param(
            edited(lambda d: d["spec"].update(ports=[{}] * 9)),
            r"^spec\.ports\.0\.name: is missing$",
            id="the first of many faults",
        ),
    ],
)
def test_it_names_what_is_wrong_with_a_report(document: object, problem: str) -> None:
    with pytest.raises(ReportError, match=problem):
        parse_report(document)


def test_it_caps_and_sorts_the_facts_of_a_device() -> None:
    long = "x" * 600
    odd = Port("eth2", bond_master=long, rdma_device=long, pci_address=long)
    report = build_report(Device(DeviceKind.UNKNOWN, long, (), (Port("eth10"), odd)), name="n1")
    device = report.device
    assert device is not None
    assert (device.kind, len(device.name)) == (DeviceKind.HOST, MAX_TEXT)
    assert [port.name for port in device.ports] == ["eth2", "eth10"]
    texts = (device.ports[0].bond_master, device.ports[0].rdma_device, device.ports[0].pci_address)
    assert {len(text or "") for text in texts} == {MAX_TEXT}


def test_it_leaves_out_implausibly_large_numbers() -> None:
    port = Port("eth0", rate_bps=2**32 * 10**6, numa_node=2**31)
    device = build_report(Device(DeviceKind.HOST, "n1", (), (port,)), name="n1").device
    assert device is not None
    assert device.ports == (Port("eth0"),)


def test_it_canonicalizes_ids_and_drops_meaningless_ones() -> None:
    ids = (
        Id(IdKind.CHASSIS_ID, "AA-BB-CC-DD-EE-00", "mac"),
        Id(IdKind.MAC, "00:00:00:00:00:00"),
        Id(IdKind.NODE_GUID, "0x2C90300"),
        Id(IdKind.PORT_GUID, "0" * 16),
    )
    device = build_report(Device(DeviceKind.HOST, "n1", ids), name="n1").device
    assert device is not None
    assert device.ids == (
        Id(IdKind.CHASSIS_ID, "aa:bb:cc:dd:ee:00", "mac"),
        Id(IdKind.NODE_GUID, "0000000002c90300"),
    )


def parts_of(text: str) -> list[SweepPart]:
    reports = split_sweep(text, node="n1", subnet="fe80000000000000")
    assert [report.metadata.name for report in reports] == [
        f"n1.sweep.{number}" for number in range(len(reports))
    ]
    assert all(report.device is None for report in reports)
    return [report.spec.sweep for report in reports if report.spec.sweep]


@given(st.text(max_size=200))
def test_it_unpacks_what_it_split(text: str) -> None:
    kept = text.encode(errors="replace").decode()
    assert unpack_sweep(parts_of(text)).decode() == kept


def lines_of(text: str) -> str:
    return "\n".join(text[start : start + 80] for start in range(0, len(text), 80))


def test_it_unpacks_many_parts_in_any_order() -> None:
    rng = random.Random(1)  # noqa: S311 - no secret
    text = lines_of(rng.randbytes(300_000).hex())
    parts = parts_of(text)
    assert len(parts) > 1
    assert unpack_sweep(parts[::-1]).decode() == text


BIG = split_sweep(
    lines_of(random.Random(2).randbytes(300_000).hex()),  # noqa: S311 - no secret
    node="n1",
    subnet="s",
)
WHOLE = [report.spec.sweep for report in BIG if report.spec.sweep]


def changed(**fields: object) -> list[SweepPart]:
    return [structs.replace(WHOLE[0], **fields), *WHOLE[1:]]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        pytest.param([], "incomplete: 0 of ?", id="no parts"),
        pytest.param(WHOLE[1:], "incomplete", id="the first part missing"),
        pytest.param([*WHOLE, WHOLE[0]], "incomplete", id="a part twice"),
        pytest.param(changed(sweep_id="other"), "different sweeps", id="parts of two sweeps"),
        pytest.param(changed(facts="no base64!"), "damaged", id="text that is not base64"),
        pytest.param(changed(facts="AAAA"), "damaged", id="not compressed"),
        pytest.param([structs.replace(WHOLE[0], of=1)], "damaged: its last", id="cut short"),
        pytest.param(
            [structs.replace(one, sweep_id="other") for one in WHOLE], "hash", id="a wrong id"
        ),
        pytest.param(parts_of("0\n" * (4 << 20)), "damaged or larger", id="a decompression bomb"),
        pytest.param(parts_of("0" * (4 << 20)), "a line of more", id="a line without an end"),
        pytest.param(
            parts_of(f"Ca\n{'0' * MAX_LINE_BYTES}0\nCa"), "a line of more", id="one long line"
        ),
    ],
)
def test_it_refuses_a_sweep(parts: list[SweepPart], problem: str) -> None:
    with pytest.raises(ReportError, match=problem):
        unpack_sweep(parts)


@given(st.lists(st.sampled_from(["a" * 40, "", "b"]), max_size=400), st.integers(1, 4000))
def test_pieces_are_the_text_and_end_between_devices(lines: list[str], size: int) -> None:
    text = "\n".join(lines).encode()
    blocks = [text[start : start + size] for start in range(0, len(text), size)]
    pieces = list(split_records(blocks))
    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n\n") for piece in pieces[:-1])


def test_a_piece_is_bounded_although_no_device_ends() -> None:
    pieces = list(split_records([b"[1]\n" * (PIECE_BYTES // 4)] * 4))
    assert b"".join(pieces) == b"[1]\n" * PIECE_BYTES
    assert max(map(len, pieces)) < 2 * PIECE_BYTES
    assert all(piece.endswith(b"\n") for piece in pieces)
