"""Agents on hosts and agents on switches."""

from pathlib import Path

import pytest

from agent.node_report import merge_device
from tests.agent.nodes import settings_for
from topology.model.facts import DeviceKind
from topology.model.ids import Id, IdKind


@pytest.mark.parametrize(
    ("kind", "is_node"),
    [
        pytest.param(DeviceKind.HOST, True, id="a host is the cluster's node of its name"),
        pytest.param(DeviceKind.SWITCH, False, id="a switch is not a node, with any name"),
    ],
)
def test_it_claims_a_node_name_only_for_hosts(
    tmp_path: Path, kind: DeviceKind, *, is_node: bool
) -> None:
    device = merge_device(settings_for(tmp_path, kind=kind), [])
    assert device.kind is kind
    assert (Id(IdKind.NODE_NAME, "node01") in device.ids) is is_node
    assert Id(IdKind.HOSTNAME, "node01") in device.ids
