"""How many devices the reports of all hosts may name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.ingest.claims import ClaimBuilder
from generator.ingest.report_scope import find_flooders
from tests.effort import examples
from tests.packed_reports import packed
from topology.model.claims import Claim
from topology.model.facts import Device, DeviceKind, FindingKind, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import NeighborReport, build_report


@pytest.mark.parametrize(
    ("heard", "limit", "flooders"),
    [
        pytest.param({"a": (1, 2), "b": (3,)}, 3, set(), id="as many as may be"),
        pytest.param({"a": (1, 2), "b": (3,)}, 2, {"a"}, id="the one with more"),
        pytest.param({"a": (1,), "b": (2,)}, 1, {"a"}, id="of equal ones the first by name"),
        pytest.param(
            {"a": (1, 2, 3), "b": (1, 2, 3), "c": (1, 2, 3), "x": (7, 8)}, 3, {"x"}, id="few share"
        ),
        pytest.param(
            {"x": (7, 8, 9), "y": (7, 8, 9), "a": (1,)}, 1, {"x", "y"}, id="two of one lie"
        ),
        pytest.param({}, 0, set(), id="nobody"),
    ],
)
def test_these_hosts_lose_their_entries(
    heard: dict[str, tuple[int, ...]], limit: int, flooders: set[str]
) -> None:
    assert find_flooders(heard, limit) == flooders


@settings(max_examples=examples(100))
@given(
    st.dictionaries(st.text(max_size=2), st.frozensets(st.integers(0, 20)), max_size=12),
    st.integers(0, 20),
)
def test_what_is_left_is_within_the_limit(heard: dict[str, frozenset[int]], limit: int) -> None:
    out = find_flooders(heard, limit)
    assert len({one for name in heard if name not in out for one in heard[name]}) <= limit
    assert not out or len({one for devices in heard.values() for one in devices}) > limit
    assert out == find_flooders(dict(reversed(heard.items())), limit)


def report(name: str, *switches: str) -> NeighborReport:
    heard = tuple(Neighbor((), one, (), "swp1", Source.LLDP) for one in switches)
    ids = (Id(IdKind.NODE_NAME, name),)
    return build_report(
        Device(DeviceKind.HOST, name, ids, (Port("eth0", neighbors=heard),)), name=name
    )


def test_a_flooder_is_named_and_stays_without_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = (2,)
    monkeypatch.setattr(find_flooders, "__defaults__", defaults)
    builder = ClaimBuilder()
    reports = [report("a", "leaf"), report("b", "leaf"), report("liar", "x", "y", "z")]
    first = builder.build_claims(packed(reports))
    devices = {one.device.name: one.device for one in first.claims if isinstance(one, Claim)}
    assert {name: len(one.ports[0].neighbors) for name, one in devices.items()} == {
        "a": 1,
        "b": 1,
        "liar": 0,
    }
    (finding,) = first.findings
    assert (finding.kind, finding.device) == (FindingKind.UNUSABLE_REPORT, "liar")
    assert "together name more than" in finding.message
    assert first.reporters == {"a", "b", "liar"}
    assert not builder.build_claims(packed(reports[:2])).findings
