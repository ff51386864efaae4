"""Labels and annotations: keys of schedulers may matter unless a row says why they do not."""

from __future__ import annotations

from typing import Any

import pytest

from generator.manifests.fields import Field, IgnoredField, Relevance
from generator.manifests.kinds import object_fields
from tests.generator.manifests.scenes import job, pod_spec, translated

FOREIGN = [
    pytest.param("app", "x", id="no domain"),
    pytest.param("app.kubernetes.io/name", "x", id="a name of an app"),
    pytest.param("example.com/rack", "x", id="another domain"),
    pytest.param("notvolcano.sh/queue", "x", id="a domain that ends alike"),
    pytest.param("volcano.sh.example.com/queue", "x", id="a domain that begins alike"),
    pytest.param("sidecar.istio.io/inject", "false", id="no container is added"),
    pytest.param("linkerd.io/inject", "disabled", id="no proxy is added"),
]
FELT = [
    pytest.param("sidecar.istio.io/inject", "true", id="a container is added"),
    pytest.param("volcano.sh/numa-topology-policy", "best-effort", id="a policy for NUMA"),
    pytest.param("volcano.sh/unheard-of", "x", id="an unknown key of Volcano"),
    pytest.param("scheduling.volcano.sh/unheard-of", "x", id="an unknown key of its subdomain"),
    pytest.param("koordinator.sh/qosClass", "LS", id="a class of Koordinator"),
    pytest.param("scheduling.koordinator.sh/device-allocate-hint", "{}", id="devices"),
    pytest.param("yunikorn.apache.org/task-groups", "[]", id="groups of YuniKorn"),
    pytest.param("hami.io/gpu-scheduler-policy", "binpack", id="a policy of HAMi"),
    pytest.param("nvidia.com/use-gputype", "A100", id="a type of GPU for HAMi"),
    pytest.param("cloud.google.com/gke-tpu-slice-topology", "4x4", id="a slice of TPUs"),
    pytest.param("runai/unheard-of", "x", id="an unknown key of run:ai"),
    pytest.param("runai-gpu-group", "x", id="a key of run:ai without a domain"),
    pytest.param("k8s.v1.cni.cncf.io/networks", "net", id="networks"),
]


def row_of(key: str, value: str, kind: str) -> IgnoredField:
    template: dict[str, Any] = {"metadata": {kind: {key: value}}, "spec": pod_spec()}
    (row,) = translated(job(template=template)).ignored
    assert row.path.startswith(f"Job 'train' (line 1): spec.template.metadata.{kind}")
    return row


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(("key", "value"), FOREIGN)
def test_it_has_no_effect(key: str, value: str, kind: str) -> None:
    row = row_of(key, value, kind)
    assert row.relevance is Relevance.NONE
    assert row.reason


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(("key", "value"), FELT)
def test_it_may_matter(key: str, value: str, kind: str) -> None:
    assert row_of(key, value, kind).relevance is Relevance.POSSIBLE


def test_every_key_with_a_reason_would_matter_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, field = list(object_fields.KEYS), Field("x", "key")
    assert keys
    monkeypatch.setattr(object_fields, "KEYS", {})
    assert [key for key in keys if object_fields.find_key_row(key, field) is not None] == []
