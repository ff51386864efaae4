"""The neighbor table: frames in, and the neighbors at given times."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.model.errors import ParseError
from topology.sources.lldp.lldpdu import Frame, Lldpdu
from topology.sources.lldp.neighbor_table import MAX_NEIGHBORS, REFUSAL_S, NeighborTable

CHASSIS = bytes.fromhex("0402aa00000011")
BAD = Frame(None, (ParseError("odd", source="eth0"),))


def frame(
    name: str = "leaf1",
    *,
    chassis: bytes = CHASSIS,
    port: bytes = b"\x05swp1",
    ttl_s: int = 120,
    errors: tuple[ParseError, ...] = (),
) -> Frame:
    return Frame(Lldpdu(chassis, port, ttl_s, system_name=name), errors)


def names(table: NeighborTable, at_s: float) -> dict[str, list[str]]:
    return {
        port: [one.device_name for one in neighbors]
        for port, neighbors in table.neighbors(at_s=at_s)
    }


def test_it_keeps_a_neighbor_until_its_ttl_has_passed() -> None:
    table = NeighborTable().add_frame("eth0", frame(ttl_s=120), at_s=1000.0)
    assert names(table, 1000.0) == names(table, 1119.9) == {"eth0": ["leaf1"]}
    assert names(table, 1120.0) == {}


def test_it_restarts_the_ttl_with_each_frame() -> None:
    table = (
        NeighborTable().add_frame("eth0", frame(), at_s=0.0).add_frame("eth0", frame(), at_s=100.0)
    )
    assert names(table, 219.0) == {"eth0": ["leaf1"]}
    assert names(table, 220.0) == {}


def test_it_keeps_the_newest_frame_of_a_neighbor() -> None:
    table = NeighborTable().add_frame("eth0", frame("old"), at_s=0.0)
    table = table.add_frame("eth0", frame("new", ttl_s=10), at_s=1.0)
    assert names(table, 2.0) == {"eth0": ["new"]}
    assert names(table, 11.0) == {}


def test_it_removes_only_the_neighbor_that_sends_a_shutdown_frame() -> None:
    table = NeighborTable()
    for port, far in (("eth0", b"\x05swp1"), ("eth0", b"\x05swp2"), ("eth1", b"\x05swp1")):
        table = table.add_frame(port, frame(far.decode(), port=far), at_s=0.0)
    table = table.add_frame("eth0", frame(port=b"\x05swp1", ttl_s=0), at_s=1.0)
    assert names(table, 1.0) == {"eth0": ["\x05swp2"], "eth1": ["\x05swp1"]}


def test_it_ignores_a_shutdown_frame_of_an_unknown_neighbor() -> None:
    assert names(NeighborTable().add_frame("eth0", frame(ttl_s=0), at_s=0.0), 0.0) == {}


def test_it_distinguishes_ids_of_different_subtypes() -> None:
    table = NeighborTable()
    for number, (chassis, port) in enumerate(
        [(b"\x07a", b"\x05p"), (b"\x06a", b"\x05p"), (b"\x07a", b"\x07p")]
    ):
        table = table.add_frame("eth0", frame(f"n{number}", chassis=chassis, port=port), at_s=0.0)
    assert sorted(names(table, 1.0)["eth0"]) == ["n0", "n1", "n2"]


def test_it_returns_ports_in_natural_order() -> None:
    table = NeighborTable()
    for port in ("eth10", "eth9", "eth1"):
        table = table.add_frame(port, frame(), at_s=0.0)
    assert list(names(table, 0.0)) == ["eth1", "eth9", "eth10"]


def test_it_removes_a_port_whose_cable_is_out() -> None:
    table = (
        NeighborTable().add_frame("eth0", frame(), at_s=0.0).add_frame("eth1", frame(), at_s=0.0)
    )
    assert names(table.remove_port("eth0"), 0.0) == {"eth1": ["leaf1"]}
    assert table.remove_port("eth9") == table


def full(at_s: float = 0.0, ttl_s: int = 120) -> NeighborTable:
    table = NeighborTable()
    for number in range(MAX_NEIGHBORS):
        table = table.add_frame("eth0", frame(port=b"\x05%d" % number, ttl_s=ttl_s), at_s=at_s)
    return table


def test_it_counts_frames_that_do_not_fit() -> None:
    table = (
        full().add_frame("eth0", frame("late"), at_s=1.0).add_frame("eth0", frame("late"), at_s=2.0)
    )
    assert len(names(table, 2.0)["eth0"]) == MAX_NEIGHBORS
    assert table.count_left_out() == (("eth0", 2),)
    assert full().count_left_out() == ()


def test_it_updates_known_neighbors_when_it_is_full() -> None:
    table = full().add_frame("eth0", frame("renamed", port=b"\x057"), at_s=1.0)
    assert "renamed" in names(table, 1.0)["eth0"]
    assert table.count_left_out() == ()


def test_it_has_room_again_after_others_expire() -> None:
    table = full(ttl_s=10).add_frame("eth0", frame("late"), at_s=10.0)
    assert names(table, 10.0) == {"eth0": ["late"]}


def test_it_reports_an_unreadable_frame_for_a_while() -> None:
    table = NeighborTable().add_frame("eth0", BAD, at_s=0.0).add_frame("eth0", BAD, at_s=1.0)
    assert [str(error) for error in table.errors(at_s=REFUSAL_S)] == ["eth0: odd"]
    assert table.errors(at_s=1.0 + REFUSAL_S) == ()
    assert names(table, 1.0) == {}


def test_it_reports_the_errors_of_a_known_neighbor() -> None:
    odd = frame(errors=BAD.errors * 3, ttl_s=10)
    table = NeighborTable().add_frame("eth0", odd, at_s=0.0)
    assert [str(error) for error in table.errors(at_s=9.0)] == ["eth0: odd"]
    assert table.errors(at_s=10.0) == ()
    assert table.add_frame("eth0", frame(), at_s=1.0).errors(at_s=2.0) == ()


_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("eth0", "eth1")),
        st.integers(0, 3),
        st.integers(0, 30),
        st.integers(0, 20),
    ),
    max_size=12,
)


@settings(max_examples=examples(150))
@given(_EVENTS, st.integers(0, 40))
def test_it_has_exactly_the_neighbors_whose_last_frame_is_valid(
    events: list[tuple[str, int, int, int]], later_s: int
) -> None:
    table, now_s, last = NeighborTable(), 0, dict[tuple[str, int], int]()
    for port, who, ttl_s, pause_s in events:
        now_s += pause_s
        table = table.add_frame(
            port, frame(str(who), port=b"\x05%d" % who, ttl_s=ttl_s), at_s=now_s
        )
        last[port, who] = now_s + ttl_s
    now_s += later_s
    expected = sorted((port, str(who)) for (port, who), end_s in last.items() if now_s < end_s)
    found = names(table, now_s)
    assert sorted((port, name) for port, known in found.items() for name in known) == expected
