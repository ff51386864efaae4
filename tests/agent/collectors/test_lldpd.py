"""The neighbors of lldpd, from answers of lldpcli."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.collection import CollectorRun, RunOutcome
from agent.collectors import lldpd
from agent.collectors.probe import MAX_IDS, SourceAbsent
from agent.node.command import CommandLimits
from agent.node_report import build_reports
from agent.publish.directory import document_of, render_document
from tests.agent.fakes import Answer, FakeRunner, printed
from tests.agent.nodes import chassis, heard, settings_for
from tests.effort import examples
from topology.model.errors import CollectError, CommandFailed, CommandTimeout
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import parse_report

MAC = "b8:ce:f6:00:00:01"
STAMP = "2026-11-21T12:04:02 [WARN/control] "
OWN_IDS = frozenset({Id(IdKind.CHASSIS_ID, MAC, "mac"), Id(IdKind.HOSTNAME, "node01")})
SETTINGS = settings_for(Path("/nowhere"), proc_root=Path("/nowhere"))


def answering(neighbors: Answer, own: Answer | None = None) -> FakeRunner:
    return FakeRunner({"neighbors": neighbors, "chassis": own or printed(chassis(MAC))})


def test_it_reports_the_neighbors_of_each_port_and_its_own_ids() -> None:
    runner = answering(printed(heard(("eth0", "leaf1", "swp1"), ("eth0", "host2", "eth7"))))
    found = lldpd.collect(SETTINGS, runner)
    assert found.ids == OWN_IDS
    (port,) = found.ports
    assert (port.name, port.medium) == ("eth0", Medium.ETHERNET)
    assert {(one.device_name, one.port_name, one.ttl_s) for one in port.neighbors} == {
        ("leaf1", "swp1", 120),
        ("host2", "eth7", 120),
    }
    assert (found.errors, found.note) == ((), "")


@pytest.mark.parametrize(
    ("socket", "words"),
    [
        pytest.param(None, (), id="at its own place"),
        pytest.param("/run/x.sock", ("-u", "/run/x.sock"), id="at a given place"),
    ],
)
def test_it_requests_only_json0(socket: str | None, words: tuple[str, ...]) -> None:
    runner = answering(printed(heard()))
    lldpd.collect(settings_for(Path("/nowhere"), lldpd_socket=socket, lldpcli="/x/lldpcli"), runner)
    assert runner.asked == [
        ("/x/lldpcli", *words, "-f", "json0", "show", "neighbors", "details"),
        ("/x/lldpcli", *words, "-f", "json0", "show", "chassis"),
    ]
    assert set(runner.limits) == {CommandLimits(5.0, 1 << 20)}


def test_it_accepts_a_port_without_neighbors() -> None:
    found = lldpd.collect(SETTINGS, answering(printed(heard())))
    assert (found.ports, found.ids, found.note) == ((), OWN_IDS, "no neighbor heard")


@pytest.mark.parametrize(
    ("neighbors", "own", "num_ports", "num_skipped"),
    [
        pytest.param(
            heard(("eth0", "leaf1", "swp1")).replace('"chassis"', '"nothing"', 1).encode(),
            chassis(MAC),
            0,
            1,
            id="an entry without chassis",
        ),
        pytest.param(
            b'{"lldp":[{"interface":[{"name":"eth1","port":[]},'
            + heard(("eth0", "leaf1", "swp1")).split("[", 2)[2].encode(),
            chassis(MAC),
            1,
            1,
            id="one bad entry of two",
        ),
        pytest.param(
            heard(("eth0", "leaf1", "swp1")).encode(), "{}", 1, 1, id="its own chassis unreadable"
        ),
        pytest.param(
            heard(("eth0", "le\udcffaf1", "swp1")).encode("utf-8", "surrogateescape"),
            chassis(MAC),
            1,
            0,
            id="half a character in a name",
        ),
    ],
)
def test_it_keeps_what_is_readable(
    neighbors: bytes, own: str, num_ports: int, num_skipped: int
) -> None:
    if not num_ports:
        with pytest.raises(CollectError, match="nothing readable"):
            lldpd.collect(SETTINGS, answering(printed(neighbors), printed(own)))
        return
    found = lldpd.collect(SETTINGS, answering(printed(neighbors), printed(own)))
    assert (len(found.ports), len(found.errors)) == (num_ports, num_skipped)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param(
            printed(
                b"",
                stderr=STAMP + "unable to connect to socket /s: No such file or directory\n",
                exit_code=1,
            ),
            SourceAbsent,
            "lldpd does not run here: unable to connect to socket /s: No such file or directory",
            id="absent when there is no socket",
        ),
        pytest.param(
            printed(
                b"",
                stderr=STAMP + "unable to connect to socket /s: Connection refused\n",
                exit_code=1,
            ),
            CommandFailed,
            "lldpcli: exit 1: unable to connect to socket /s: Connection refused",
            id="failed when no daemon listens",
        ),
        pytest.param(
            printed(b"", exit_code=-11), CommandFailed, "lldpcli: exit -11", id="failed on a crash"
        ),
        pytest.param(
            CommandTimeout("lldpcli: late"), CommandTimeout, "lldpcli: late", id="failed when late"
        ),
        pytest.param(printed(b""), CollectError, "nothing readable", id="failed on empty output"),
        pytest.param(
            printed("<lldp/>"), CollectError, "run `lldpcli -f json0 show", id="failed on xml"
        ),
    ],
)
def test_it_is(answer: Answer, error: type[CollectError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        lldpd.collect(SETTINGS, answering(answer))
    assert type(caught.value) is error


_leaf = st.one_of(
    st.text(max_size=8), st.text("\ud800x\x00", min_size=600, max_size=700), st.none()
)
_fields = st.fixed_dictionaries(
    {},
    optional={
        "id": st.lists(st.fixed_dictionaries({"type": st.just("mac"), "value": _leaf}), max_size=2),
        "name": _leaf.map(lambda text: [{"value": text}]),
        "mgmt-ip": st.integers(0, 200).map(
            lambda num: [{"value": f"10.0.0.{k}"} for k in range(num)]
        ),
        "ttl": st.integers().map(lambda ttl: [{"value": str(ttl)}]),
    },
)
_entries = st.fixed_dictionaries(
    {"name": _leaf, "chassis": st.lists(_fields, max_size=2), "port": st.lists(_fields, max_size=2)}
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_entries, max_size=4))
def test_it_turns_any_neighbors_into_a_report_that_can_be_published(
    entries: list[object],
) -> None:
    document = json.dumps({"lldp": [{"interface": entries}]})
    try:
        found = lldpd.collect(SETTINGS, answering(printed(document)))
    except CollectError:
        return
    attempts = [CollectorRun("lldpd", RunOutcome.OK, "", 0.1, found)]
    (report,) = build_reports(SETTINGS, attempts, now=datetime(2026, 1, 1, tzinfo=UTC))
    published = json.loads(render_document(document_of(report)).encode())
    assert parse_report(published) == report


def test_it_keeps_the_chassis_id_of_a_neighbor_with_many_addresses() -> None:
    addresses = ", ".join(f'{{"value": "10.0.{k // 250}.{k % 250 + 1}"}}' for k in range(500))
    crowded = heard(("eth0", "leaf1", "swp1")).replace(
        '"name": [{"value": "leaf1"}]', f'"mgmt-ip": [{addresses}]'
    )
    (port,) = lldpd.collect(SETTINGS, answering(printed(crowded))).ports
    (neighbor,) = port.neighbors
    assert len(neighbor.device_ids) == MAX_IDS
    assert neighbor.device_ids[0].kind is IdKind.CHASSIS_ID


def test_it_is_absent_without_lldpcli() -> None:
    with pytest.raises(SourceAbsent, match="lldpcli not found: is lldpd installed"):
        lldpd.collect(SETTINGS, FakeRunner())
    absence = lldpd.find_absence(SETTINGS, FakeRunner())
    assert str(absence) == "lldpcli not found: is lldpd installed?"


def test_it_is_available_when_it_answers() -> None:
    assert lldpd.find_absence(SETTINGS, answering(printed(heard()))) is None


def test_it_restores_neighbors_from_a_report() -> None:
    leaf = Neighbor((), "leaf", (), "swp1", Source.LLDP)
    switch = Neighbor((), "ib", (), "1", Source.IB)
    domain = Neighbor((), "nvlink-0-1", (), "", Source.OTHER)
    device = Device(
        DeviceKind.HOST,
        "n",
        tuple(sorted({*OWN_IDS, Id(IdKind.MAC, MAC)})),
        (
            Port("eth0", (Id(IdKind.MAC, MAC),), rate_bps=1, neighbors=(leaf,)),
            Port("eth1"),
            Port("mlx5_0/1", medium=Medium.INFINIBAND, neighbors=(switch,)),
            Port("nvlink", medium=Medium.NVLINK, neighbors=(domain,)),
        ),
    )
    found = lldpd.restore(device)
    assert found.ids == OWN_IDS
    assert found.ports == (Port("eth0", (Id(IdKind.IFNAME, "eth0"),), neighbors=(leaf,)),)
