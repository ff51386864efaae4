"""The elected sweepers in the cluster's Fabric object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.publish.kube.credentials import TokenNode
from agent.publish.kube.https_client import ApiClient, ApiRequest
from agent.sweep_schedule import read_cluster_fabric
from topology.model.errors import KubeError, KubeForbidden, KubeNotFound, KubeUnavailable
from topology.reports.fabric_status import FabricStatus, Sweeper, SweepRole, render_fabric

STATUS = FabricStatus(
    sweepers=(
        Sweeper(
            subnet="fe80000000000000", node="n1", device="mlx5_0", port=1, role=SweepRole.ELECTED
        ),
    )
)


@dataclass
class ScriptedApi(ApiClient):
    """An API server that gives the same answer until a test sets another."""

    answer: Mapping[str, Any] | KubeError
    blocking_error: KubeError | None = None
    asked: list[str] = field(default_factory=list)

    def call(self, request: ApiRequest) -> dict[str, Any]:
        """Return or raise the answer."""
        self.asked.append(str(request))
        if isinstance(self.answer, KubeError):
            raise self.answer
        return dict(self.answer)

    def own_node(self) -> TokenNode | None:
        """Return None; these tests do not use it."""
        return None


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi(render_fabric(STATUS))


def test_it_returns_the_sweepers(api: ScriptedApi) -> None:
    assert read_cluster_fabric(api).latest() == STATUS
    assert api.asked == ["GET /apis/toponaut.io/v1alpha1/fabrics/default"]


@pytest.mark.parametrize(
    "trouble", [KubeUnavailable("away"), KubeForbidden("403"), {"kind": "Fabric"}], ids=str
)
def test_it_keeps_the_last_status_and_logs_a_problem_once(
    api: ScriptedApi, caplog: pytest.LogCaptureFixture, trouble: Mapping[str, Any] | KubeError
) -> None:
    fabric = read_cluster_fabric(api)
    fabric.latest()
    api.answer = trouble
    assert [fabric.latest(), fabric.latest()] == [STATUS, STATUS]
    assert [one.message for one in caplog.records] == ["fabric unreadable"]


@pytest.mark.parametrize(("refusals", "warnings"), [(2, 0), (5, 1)])
def test_it_warns_of_a_missing_right_only_if_it_stays_missing(
    api: ScriptedApi, caplog: pytest.LogCaptureFixture, refusals: int, warnings: int
) -> None:
    fabric = read_cluster_fabric(api)
    api.answer = KubeForbidden("refused", status=403)
    for _ in range(refusals):
        fabric.latest()
    said = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert said == ["fabric unreadable"] * warnings


def test_no_node_sweeps_without_a_fabric(api: ScriptedApi) -> None:
    fabric = read_cluster_fabric(api)
    fabric.latest()
    api.answer = KubeNotFound("none")
    assert fabric.latest() == FabricStatus()


def test_it_sends_no_request_during_a_cooldown(api: ScriptedApi) -> None:
    api.blocking_error = KubeUnavailable("away")
    assert read_cluster_fabric(api).latest() == FabricStatus()
    assert api.asked == []
