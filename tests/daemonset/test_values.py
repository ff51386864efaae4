"""Values that are no use are refused before anything is rendered, and the message says which."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.daemonset.tools import CHART, DEADLINE_S, render

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]

BAD = {
    "a key that is spelt wrong": ("agent.mod=frames", "mod"),
    "a section that nobody knows": ("agents.mode=frames", "agents"),
    "a mode that is none": ("agent.mode=sniff", "mode"),
    "a period without a unit": ("generator.period=60", "period"),
    "a period of no time": ("agent.period=0s", "period"),
    "a port that is none": ("agent.metricsPort=80000", "metricsPort"),
    "a group by its name": ("agent.lldpd.gid=_lldpd", "gid"),
    "a group by its name in a list": ("agent.lldpd.gid={105,_lldpd}", "gid"),
    "no group": ("agent.lldpd.gid=[]", "gid"),
    "a digest that is none": ("image.digests.agent=latest", "agent"),
    "a digest of an unknown image": ("image.digests.server=sha256:00", "server"),
    "a requirement that cannot be negated": (
        "agent.runtimeClassNodes[0].key=a,agent.runtimeClassNodes[0].operator=Gt",
        "operator",
    ),
    "a requirement without its values": (
        "agent.runtimeClassNodes[0].key=a,agent.runtimeClassNodes[0].operator=In",
        "values",
    ),
    "an option that SELinux has not": ("agent.seLinuxOptions.kind=spc_t", "kind"),
    "a domain that begins with a dot": ("clusterDomain=.local", "clusterDomain"),
    "a socket folder that is all of /run": ("agent.lldpd.socketDir=/run", "socketDir"),
    "no replica": ("generator.replicas=0", "replicas"),
    "an argument that is no option": ("generator.extraArgs={rm}", "extraArgs"),
    "a pull policy that is none": ("image.pullPolicy=Sometimes", "pullPolicy"),
    "a tag with a registry in it": ("image.tag=example.org/x:1", "tag"),
    "a budget that takes no agent down": ("agent.maxUnavailable=0%", "maxUnavailable"),
    "a class above those of the system": ("agent.priorityClass.value=2000000001", "value"),
    "sweepers on every node": (
        "sweep.nodeSelector=null,sweep.enabled=true,sweep.privileged=true",
        "nodeSelector",
    ),
    "a certificate of nobody": ("grpc.certManager.enabled=true", "issuerRef"),
    "no audience": ("grpc.tokenAudience=", "tokenAudience"),
    "an Ingress without a host": ("web.ingress.enabled=true", "host"),
    "a host that is an address": ("web.ingress.host=https://x", "host"),
    "a link that is none": ("monitoring.rules.runbookBase=docs", "runbookBase"),
    "a resource kind that is none": ("agent.resources.request.cpu=1", "request"),
}


@pytest.mark.parametrize(("setting", "named"), BAD.values(), ids=BAD)
def test_it_refuses(setting: str, named: str, tmp_path: Path) -> None:
    answer = render(settings=[setting], home=tmp_path)
    assert answer.returncode != 0
    assert "values don't meet the specifications of the schema" in answer.stderr
    assert named in answer.stderr


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        pytest.param(
            "sweep.enabled=true",
            "set sweep.deviceResource to the resource of a device plugin, such as "
            "rdma/hca_shared_devices_a, or set sweep.privileged=true",
            id="sweepers without a device",
        ),
        pytest.param(
            "sweep.enabled=true,sweep.privileged=true,sweep.deviceResource=rdma/hca",
            "sweep.deviceResource and sweep.privileged exclude each other",
            id="sweepers with two ways to a device",
        ),
    ],
)
def test_it_says_how_sweepers_reach_the_fabric(setting: str, advice: str, tmp_path: Path) -> None:
    answer = render(settings=[setting], home=tmp_path)
    assert answer.returncode != 0
    assert advice in answer.stderr
    assert "oneOf" not in answer.stderr


def list_keys(values: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the path of each value, sections before what is in them."""
    for key, value in values.items():
        path = f"{above}{key}"
        yield path
        if isinstance(value, dict):
            yield from list_keys(value, f"{path}.")


def has_null(value: object) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(has_null, parts))


EVERYTHING = (
    "sweep.enabled=true,sweep.privileged=true,agent.runtimeClassName=nvidia",
    "grpc.enabled=true,web.enabled=true,web.ingress.enabled=true,web.ingress.host=a.example",
    "grpc.certManager.enabled=true,grpc.certManager.issuerRef.name=a",
    "monitoring.podMonitor.enabled=true,monitoring.rules.enabled=true",
    "monitoring.dashboard.enabled=true",
)


@pytest.mark.timeout(20 * DEADLINE_S)
def test_it_takes_the_removal_of_a_value_or_names_it(tmp_path: Path) -> None:
    """Helm removes a default that is set to null, and leaves out new ones in some upgrades."""
    keys = list_keys(yaml.safe_load((CHART / "values.yaml").read_text()))
    for key in (key for key in keys if "/" not in key.rpartition(".")[2]):
        answer = render(settings=[*EVERYTHING, f"{key}=null"], home=tmp_path)
        if answer.returncode == 0:
            documents = yaml.load_all(answer.stdout, yaml.CSafeLoader)
            assert not any(map(has_null, documents)), key
        else:
            assert "meet the specifications of the schema" in answer.stderr, key
            assert key.rpartition(".")[2] in answer.stderr


def test_the_ports_of_an_agent_differ(tmp_path: Path) -> None:
    answer = render(settings=["agent.metricsPort=8081"], home=tmp_path)
    assert answer.returncode != 0
    assert "agent.metricsPort and agent.healthPort are the same port" in answer.stderr


def test_an_ingress_needs_certificates_and_tokens(tmp_path: Path) -> None:
    setting = "web.enabled=true,web.ingress.enabled=true,web.ingress.host=toponaut.example.org"
    answer = render(settings=[setting], home=tmp_path)
    assert answer.returncode != 0
    assert "web.ingress.enabled needs grpc.enabled=true" in answer.stderr
    answer = render(settings=[f"{setting},grpc.enabled=true"], home=tmp_path)
    assert answer.returncode == 0, answer.stderr


def test_it_says_what_can_be_said_for_every_default(tmp_path: Path) -> None:
    # A value that the schema lacks would be refused as unknown, one that the values lack is dead.
    answer = render(settings=["global.other=1"], home=tmp_path)
    assert answer.returncode == 0, answer.stderr
