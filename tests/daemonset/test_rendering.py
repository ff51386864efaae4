"""The chart renders what its golden files say, and the plain manifests are rendered from it."""

import re
from pathlib import Path

import pytest
import yaml

from tests.daemonset.cases import CASES, one_of
from tests.daemonset.tools import CHART, DEADLINE_S, find_tool, render, run
from tests.documents import parse_documents
from tests.golden import Golden
from tests.repository import ROOT

CRDS = ROOT / "daemonset" / "crds"
KEPT = {
    "helm.sh/resource-policy": "keep",
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
"""Argo CD would prune what only Helm's annotation keeps: see
https://github.com/argoproj/argo-cd/issues/17819."""
pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_renders_what_is_expected(case: Path, golden: Golden, tmp_path: Path) -> None:
    answer = render([case / "input.yaml"], home=tmp_path)
    assert answer.returncode == 0, answer.stderr
    golden.check(case / "expected.yaml", answer.stdout)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_has_no_complaint_of_helm(case: Path, tmp_path: Path) -> None:
    lint = [find_tool("helm"), "lint", "--strict", "--quiet", f"--values={case}/input.yaml", CHART]
    answer = run(lint, home=tmp_path)
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stdout + answer.stderr


def test_it_keeps_the_plain_manifests_in_step() -> None:
    find_tool("helm")
    answer = run([ROOT / "tools/manifests", "--check"], home=Path.home())
    assert answer.returncode == 0, answer.stderr + "run make manifests"


def test_it_carries_the_crds_as_they_are(tmp_path: Path) -> None:
    carried = {file.name: file.read_text() for file in (CHART / "files" / "crds").iterdir()}
    assert carried == {file.name: file.read_text() for file in CRDS.iterdir()}, "run make manifests"
    answer = render(home=tmp_path)
    documents = parse_documents(answer.stdout)
    for file in CRDS.iterdir():
        crd = yaml.safe_load(file.read_text())
        found = one_of(documents, "CustomResourceDefinition", crd["metadata"]["name"])
        assert found["spec"] == crd["spec"]
        assert found["metadata"]["annotations"] == KEPT


def test_it_lets_the_crds_go_where_they_are_not_kept(tmp_path: Path) -> None:
    answer = render(settings=["crds.keep=false"], home=tmp_path)
    kinds = [one for one in parse_documents(answer.stdout) if "Custom" in one["kind"]]
    assert [one["metadata"]["annotations"] for one in kinds] == [{}] * len(list(CRDS.iterdir()))


def test_it_is_released_with_the_programs_under_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    assert {chart["version"], chart["appVersion"]} == {found[1]}


def test_it_takes_the_domain_of_the_cluster_from_the_values(tmp_path: Path) -> None:
    settings = ["grpc.enabled=true", "grpc.certManager.enabled=true"]
    settings += ["grpc.certManager.issuerRef.name=ca", "clusterDomain=k8s.example.org"]
    answer = render(settings=settings, home=tmp_path)
    certificate = one_of(
        parse_documents(answer.stdout),
        *("Certificate", "toponaut-generator"),
    )
    host = "toponaut-generator.toponaut-system.svc"
    assert {host, f"{host}.k8s.example.org"} <= set(certificate["spec"]["dnsNames"])
    assert "cluster.local" not in answer.stdout
