"""The history of a cluster in an object, with the rights that the chart gives for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml

from generator.history.backup import MAX_BYTES
from generator.kube.applier import Fence, never_fenced
from generator.kube.credentials import load_kubeconfig
from generator.kube.resources import CONFIG_MAPS
from generator.kube.transport import KubeTransport
from generator.store.cluster_store import ClusterStore
from generator.store.history_object import NAME, HistoryObject
from runtime.retry import WaitContext
from tests.kube.accounts import RBAC, Accounts
from tests.kube.followers import JITTER, HastyStop
from tests.lab.api_server import ADMIN, ApiServer
from tests.repository import ROOT
from topology.model.errors import KubeError, KubeFenced

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

ROLE = ROOT / "daemonset/chart/toponaut/templates/generator/access.yaml"
ACCOUNT = "toponaut-generator"


def read_rule() -> Any:  # noqa: ANN401 - YAML
    """Return the rule of the chart that names the object."""
    text = ROLE.read_text(encoding="utf-8")
    rule = text.partition("# The history outlives the pod.\n")[2].partition("{{-")[0]
    (found,) = yaml.safe_load(rule)
    return found


@pytest.fixture
def limited(api: ApiServer, namespace: str, tmp_path: Path) -> Iterator[KubeTransport]:
    """A connection of an account that has this one rule of the chart."""
    accounts = Accounts(api, namespace)
    accounts.create(ACCOUNT)
    path = f"{RBAC}/namespaces/{namespace}"
    role = {"metadata": {"name": "history"}, "rules": [read_rule()]}
    api.expect("POST", f"{path}/roles", role)
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "history"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "history"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    api.expect("POST", f"{path}/rolebindings", binding)
    config = json.loads(api.kubeconfig(ADMIN).read_text())
    issuer = "https://kubernetes.default.svc"
    config["users"][0]["user"]["token"] = accounts.token(ACCOUNT, issuer)
    file = tmp_path / "account.kubeconfig"
    file.write_text(json.dumps(config))
    found = KubeTransport(lambda: load_kubeconfig(str(file)))
    try:
        yield found
    finally:
        found.close()


def history_in(
    transport: KubeTransport, namespace: str, fence: Fence = never_fenced
) -> HistoryObject:
    """Return the object of a replica."""
    pace = WaitContext(HastyStop(), monotonic, JITTER)
    return HistoryObject(ClusterStore(transport, pace=pace, fence=fence), namespace)


def test_it_is_created_replaced_and_read(limited: KubeTransport, namespace: str) -> None:
    kept = history_in(limited, namespace)
    assert kept.read() is None
    for content in (b"one", bytes(range(256)) * (MAX_BYTES // 256)):
        kept.write(content)
        assert kept.read() == content


def test_the_rights_are_for_this_object_alone(limited: KubeTransport) -> None:
    rule = read_rule()
    assert (rule["resources"], rule["resourceNames"]) == (["configmaps"], [NAME])
    assert set(rule["verbs"]) == {"get", "create", "patch"}
    with pytest.raises(KubeError, match="forbidden"):
        history_in(limited, "default").read()


def test_a_replica_that_may_not_lead_writes_nothing(limited: KubeTransport, namespace: str) -> None:
    with pytest.raises(KubeFenced):
        history_in(limited, namespace, fence=lambda: 0.0).write(b"late")
    assert history_in(limited, namespace).read() is None


def test_what_else_is_in_the_object_stays(
    api: ApiServer, limited: KubeTransport, namespace: str
) -> None:
    document = {"metadata": {"name": NAME}, "data": {"note": "keep"}}
    api.expect("POST", CONFIG_MAPS.path(namespace=namespace), document)
    kept = history_in(limited, namespace)
    assert kept.read() is None
    kept.write(b"one")
    assert kept.read() == b"one"
    found = api.expect("GET", CONFIG_MAPS.path(NAME, namespace=namespace))
    assert found["data"] == {"note": "keep"}
