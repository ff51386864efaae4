"""What each way to install may do on a node: no more than its mode needs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.daemonset.cases import CASES, Renderings, one_of
from tests.daemonset.tools import DEADLINE_S, render
from tests.documents import parse_documents

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]
PLAIN = 65532
SYS, LLDPD, DEVICES = "/sys", "/run/lldpd", "/dev/infiniband"


class Privileges(NamedTuple):
    """What a pod has beyond nothing."""

    uid: int | None = PLAIN
    """None: the platform chooses one."""
    is_privileged: bool = False
    has_host_network: bool = False
    capabilities: tuple[str, ...] = ()
    host_paths: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()


MODES = {
    "an agent that asks lldpd has its group and nothing more": (
        "as-it-comes",
        "agent",
        Privileges(host_paths=(LLDPD, SYS), groups=(105,)),
    ),
    "an agent that hears frames has the host's network and NET_RAW": (
        "frames-heard-by-the-agent",
        "agent",
        Privileges(uid=0, has_host_network=True, capabilities=("NET_RAW",)),
    ),
    "an agent beside sweepers has no device": (
        "sweepers-with-a-device-plugin",
        "agent",
        Privileges(host_paths=(SYS,)),
    ),
    "a sweeper has what a plugin hands out": (
        "sweepers-with-a-device-plugin",
        "sweeper",
        Privileges(uid=0, host_paths=(SYS,), devices=("rdma/hca_shared_devices_a",)),
    ),
    "a sweeper without a plugin is privileged, its fellows are not": (
        "sweepers-that-are-privileged",
        "sweeper",
        Privileges(uid=0, is_privileged=True, host_paths=(DEVICES, LLDPD, SYS), groups=(105,)),
    ),
    "an agent has every group that the socket may have": (
        "gpu-nodes-beside-others",
        "agent-gpu",
        Privileges(host_paths=(LLDPD, SYS), groups=(105, 112)),
    ),
    "an agent on OpenShift has the user of the platform": (
        "on-openshift",
        "agent",
        Privileges(uid=None, host_paths=(LLDPD, SYS), groups=(105,)),
    ),
    "an agent beside privileged sweepers is as elsewhere": (
        "sweepers-that-are-privileged",
        "agent",
        Privileges(host_paths=(LLDPD, SYS), groups=(105,)),
    ),
}


def pods_of(case: str, renderings: Renderings) -> dict[str, Mapping[str, Any]]:
    """Return the pods that a case makes, by the names of what makes them."""
    makers = (one for one in renderings.of(case) if one["kind"] in {"DaemonSet", "Deployment"})
    return {
        one["metadata"]["name"].removeprefix("toponaut-"): one["spec"]["template"]["spec"]
        for one in makers
    }


def privileges_of(pod: Mapping[str, Any]) -> Privileges:
    security, (container,) = pod["securityContext"], pod["containers"]
    own = container["securityContext"]
    paths = (one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one)
    limits = container["resources"].get("limits", {})
    return Privileges(
        uid=security.get("runAsUser"),
        is_privileged=own.get("privileged", False),
        has_host_network=pod.get("hostNetwork", False),
        capabilities=tuple(own.get("capabilities", {}).get("add", ())),
        host_paths=tuple(sorted(paths)),
        devices=tuple(name for name in limits if "/" in name),
        groups=tuple(security.get("supplementalGroups", ())),
    )


@pytest.mark.parametrize(("case", "component", "expected"), MODES.values(), ids=MODES)
def test_it_gives_no_more_than_needed(
    case: str, component: str, expected: Privileges, renderings: Renderings
) -> None:
    assert privileges_of(pods_of(case, renderings)[component]) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_locks_every_container_down(case: Path, renderings: Renderings) -> None:
    pods = pods_of(case.name, renderings)
    assert {"agent", "generator"} <= set(pods)
    for pod in pods.values():
        (container,) = pod["containers"]
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"]
        assert own.get("privileged") or own["allowPrivilegeEscalation"] is False
        assert own.get("privileged") or own["capabilities"]["drop"] == ["ALL"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["automountServiceAccountToken"]
        assert container["resources"]["requests"]
        assert "hostPort" not in str(container["ports"])
        mounts = {one["name"]: one for one in container["volumeMounts"]}
        paths = {one["name"] for one in pod["volumes"] if "hostPath" in one} - {"infiniband"}
        assert all(mounts[name]["readOnly"] for name in paths)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_hands_out_tokens_that_end(case: Path, renderings: Renderings) -> None:
    for pod in pods_of(case.name, renderings).values():
        (token,) = (one for one in pod["volumes"] if one["name"] == "token")
        (source,) = (one["serviceAccountToken"] for one in token["projected"]["sources"][:1])
        assert source == {"path": "token", "expirationSeconds": 3600}


def test_it_survives_the_loss_of_a_replica(renderings: Renderings) -> None:
    documents = renderings.of("as-it-comes")
    maker = one_of(documents, "Deployment", "toponaut-generator")["spec"]
    budget = one_of(documents, "PodDisruptionBudget", "toponaut-generator")["spec"]
    assert (maker["replicas"], budget["minAvailable"]) == (2, 1)
    assert budget["selector"] == maker["selector"]
    (spread,) = maker["template"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"] == maker["selector"]


def test_it_has_no_budget_that_would_block_every_drain(renderings: Renderings) -> None:
    kinds = {one["kind"] for one in renderings.of("kinds-and-fabric-of-ones-own")}
    assert "PodDisruptionBudget" not in kinds


def test_it_listens_where_nobody_else_can_ask_when_it_has_no_certificate(
    renderings: Renderings,
) -> None:
    arguments = {
        case: pods_of(case, renderings)["generator"]["containers"][0]["args"]
        for case in ("as-it-comes", "placement-over-the-network")
    }
    assert {"--listen=127.0.0.1:9810", "--insecure-loopback"} <= set(arguments["as-it-comes"])
    secured = arguments["placement-over-the-network"]
    assert "--insecure-loopback" not in secured
    assert {"--listen=:9810", "--tls-cert=/etc/toponaut/tls/tls.crt"} <= set(secured)


def test_replicas_reach_each_other_whatever_the_network_policy_restricts(
    renderings: Renderings,
) -> None:
    documents = renderings.of("placement-over-the-network")
    (policy,) = (
        one["spec"]
        for one in documents
        if (one["kind"], one["metadata"]["name"]) == ("NetworkPolicy", "toponaut-generator")
    )
    peer = {"podSelector": policy["podSelector"]}
    (container,) = pods_of("placement-over-the-network", renderings)["generator"]["containers"]
    (port,) = (one["containerPort"] for one in container["ports"] if one["name"] == "grpc")
    callers = [rule["from"] for rule in policy["ingress"] if rule["ports"][0]["port"] == port]
    assert callers == [[{"ipBlock": {"cidr": "10.0.0.0/16"}}, peer]]
    (leader,) = (rule for rule in policy["egress"] if rule.get("to") == [peer])
    assert leader["ports"] == [{"port": port, "protocol": "TCP"}]


def test_it_serves_the_page_only_where_callers_are_known(renderings: Renderings) -> None:
    cases = {"page-on-loopback": "--web=127.0.0.1:9811", "page-behind-an-ingress": "--web=:9811"}
    for case, option in cases.items():
        (container,) = pods_of(case, renderings)["generator"]["containers"]
        ports = {one["name"] for one in container["ports"]}
        assert option in container["args"]
        is_open = option == "--web=:9811"
        assert ("web" in ports) == is_open
        assert ("--token-audience=toponaut" in container["args"]) == is_open
        assert ("--insecure-loopback" in container["args"]) != is_open
    services = [one for one in renderings.of("page-on-loopback") if one["kind"] == "Service"]
    assert services == []


def test_an_ingress_reaches_the_page_and_not_the_placement(renderings: Renderings) -> None:
    documents = renderings.of("page-behind-an-ingress")
    (ingress,) = (one for one in documents if one["kind"] == "Ingress")
    (service,) = (one for one in documents if one["kind"] == "Service")
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    backend = path["backend"]["service"]
    assert backend["name"] == service["metadata"]["name"]
    ports = {one["name"]: one["targetPort"] for one in service["spec"]["ports"]}
    assert ports[backend["port"]["name"]] == "web"


def test_openshift_chooses_users_and_no_pod_is_root_unasked(renderings: Renderings) -> None:
    """Its SCC restricted-v2 refuses a user, a group of files and a root that a chart chooses.

    Source: https://github.com/goharbor/harbor-helm/issues/874.
    """
    pods = pods_of("on-openshift", renderings)
    for pod in pods.values():
        assert pod["securityContext"]["runAsNonRoot"]
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(pod["securityContext"])
    generator = pods["generator"]
    kinds = {key for volume in generator["volumes"] for key in volume} - {"name"}
    assert kinds <= {"configMap", "downwardAPI", "emptyDir", "projected", "secret"}


SCC_CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "agents that mount folders of the node": ([], {}),
    "agents that hear frames": (
        ["agent.mode=frames"],
        {"allowHostNetwork": True, "allowHostPorts": True, "allowedCapabilities": ["NET_RAW"]}
        | {"runAsUser": {"type": "RunAsAny"}},
    ),
    "sweepers with a device plugin": (
        ["sweep.enabled=true", "sweep.deviceResource=rdma/hca"],
        {"runAsUser": {"type": "RunAsAny"}},
    ),
    "privileged sweepers": (
        ["sweep.enabled=true", "sweep.privileged=true"],
        {"allowPrivilegedContainer": True, "allowPrivilegeEscalation": True}
        | {"requiredDropCapabilities": [], "runAsUser": {"type": "RunAsAny"}},
    ),
}


@pytest.mark.parametrize("case", SCC_CASES)
def test_openshift_admits_what_agents_need_and_no_more(case: str, tmp_path: Path) -> None:
    settings, changes = SCC_CASES[case]
    rendered = render(settings=["openshift.enabled=true", *settings], home=tmp_path).stdout
    documents = parse_documents(rendered)
    scc = one_of(documents, "SecurityContextConstraints", "toponaut-agent")
    least: dict[str, Any] = {
        **dict.fromkeys(("allowHostIPC", "allowHostPID", "allowHostNetwork"), False),
        **dict.fromkeys(("allowHostPorts", "allowPrivilegedContainer"), False),
        "allowHostDirVolumePlugin": True,
        "allowPrivilegeEscalation": False,
        "allowedCapabilities": [],
        "requiredDropCapabilities": ["ALL"],
        "runAsUser": {"type": "MustRunAsRange"},
        "readOnlyRootFilesystem": True,
    }
    assert {key: scc[key] for key in least} == least | changes
    (rule,) = one_of(documents, "Role", "toponaut-agent-openshift")["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["toponaut-agent"], ["use"])


def test_selinux_options_are_those_of_the_values(renderings: Renderings) -> None:
    (container,) = pods_of("on-openshift", renderings)["agent"]["containers"]
    assert container["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
