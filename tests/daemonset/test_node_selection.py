"""On which nodes agents run: one on each Linux machine, with the RuntimeClass where it exists.

Agents tolerate every taint, so only labels keep them from nodes that are no machines: see
https://github.com/prometheus-community/helm-charts/issues/4735,
https://github.com/admiraltyio/admiralty/issues/114 and https://github.com/liqotech/liqo/issues/1398.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.daemonset.cases import CASES, Renderings
from tests.daemonset.tools import DEADLINE_S, render

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]
Labels = Mapping[str, str]
LINUX: Final = {"kubernetes.io/os": "linux"}
SWEEPER: Final = {"node-restriction.kubernetes.io/toponaut-sweeper": "true"}
GPU: Final = {"nvidia.com/gpu.present": "true"}
NO_MACHINES: Final = {
    "a Windows node": {"kubernetes.io/os": "windows"},
    "a Fargate node": LINUX | {"eks.amazonaws.com/compute-type": "fargate"},
    "a virtual kubelet": LINUX | {"type": "virtual-kubelet"},
    "a virtual node of Admiralty": LINUX | {"virtual-kubelet.io/provider": "admiralty"},
    "a virtual node of Liqo": LINUX | {"liqo.io/type": "virtual-node"},
    "a node of KWOK": LINUX | {"type": "kwok"},
}
CHOICES: Final[tuple[tuple[Labels, ...], ...]] = (
    ({}, SWEEPER),
    ({}, GPU, {"nvidia.com/gpu.present": "false"}),
    ({}, {"nvidia.com/mig.capable": "true"}),
    ({"kubernetes.io/arch": "amd64"}, {"kubernetes.io/arch": "arm64"}),
    ({"pool": "train"}, {"pool": "infer"}, {"pool": "infer", "virtual": "1"}, {"pool": "web"}),
)
NODES: Final = [
    {key: value for row in rows for key, value in row.items()} | LINUX for rows in product(*CHOICES)
]


def meets(labels: Labels, expression: Mapping[str, Any]) -> bool:
    """Return whether labels meet a requirement, as kube-scheduler reads it."""
    value, values = labels.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(expression)


def runs_on(pod: Mapping[str, Any], labels: Labels) -> bool:
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required["nodeSelectorTerms"] if required else [{"matchExpressions": []}]
    return pod.get("nodeSelector", {}).items() <= labels.items() and any(
        all(meets(labels, one) for one in term["matchExpressions"]) for term in terms
    )


def agents_of(case: str, renderings: Renderings) -> dict[str, Mapping[str, Any]]:
    """Return the pods of each DaemonSet by its name."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in renderings.of(case)
        if one["kind"] == "DaemonSet"
    }


def agents_on(agents: Mapping[str, Mapping[str, Any]], labels: Labels) -> list[str]:
    return [name for name, pod in agents.items() if runs_on(pod, labels)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_puts_at_most_one_agent_on_each_node(case: Path, renderings: Renderings) -> None:
    agents = agents_of(case.name, renderings)
    assert [row for row in NODES if len(agents_on(agents, row)) > 1] == []


@pytest.mark.parametrize("node", NO_MACHINES)
def test_it_puts_no_agent_on(node: str, renderings: Renderings) -> None:
    assert agents_on(agents_of("as-it-comes", renderings), NO_MACHINES[node]) == []
    assert agents_on(agents_of("sweepers-that-are-privileged", renderings), NO_MACHINES[node]) == []


def test_it_puts_an_agent_on_every_machine(renderings: Renderings) -> None:
    for case in ("as-it-comes", "on-openshift", "sweepers-that-are-privileged"):
        agents = agents_of(case, renderings)
        assert [row for row in NODES if not agents_on(agents, row)] == []


def test_agents_have_the_runtime_class_where_it_exists_and_elsewhere_none(
    renderings: Renderings,
) -> None:
    """A node without the handler refuses the pod, and would have no agent.

    Source: https://github.com/NVIDIA/gpu-operator/issues/730.
    """
    agents = agents_of("gpu-nodes-beside-others", renderings)
    for row in NODES:
        is_wanted = row["pool"] == "train" or (row["pool"] == "infer" and "virtual" not in row)
        found = agents_on(agents, row)
        assert len(found) == is_wanted
        for name in found:
            has_class = GPU.items() <= row.items() and "nvidia.com/mig.capable" not in row
            container = agents[name]["containers"][0]
            assert ("runtimeClassName" in agents[name]) == has_class
            assert ("NVIDIA_VISIBLE_DEVICES" in str(container["env"])) == has_class
            assert ("--sweep=elected" in container["args"]) == (SWEEPER.items() <= row.items())


def test_every_agent_has_the_runtime_class_if_all_nodes_have_it(tmp_path: Path) -> None:
    settings = ["agent.runtimeClassName=nvidia", "agent.runtimeClassNodes=null"]
    rendered = render(settings=settings, home=tmp_path).stdout
    assert rendered.count("runtimeClassName: nvidia") == rendered.count("kind: DaemonSet") == 1


def test_its_selectors_select_the_pods_of_one_daemonset_each(renderings: Renderings) -> None:
    """A DaemonSet adopts pods that its selector selects."""
    for case in CASES:
        sets = [one for one in renderings.of(case.name) if one["kind"] == "DaemonSet"]
        for one, other in product(sets, sets):
            selector = one["spec"]["selector"]["matchLabels"]
            labels = other["spec"]["template"]["metadata"]["labels"]
            assert (selector.items() <= labels.items()) == (one is other)


def test_a_selector_stays_as_it_was(renderings: Renderings) -> None:
    """It cannot change: an upgrade would be refused."""
    found = {
        one["metadata"]["name"]: one["spec"]["selector"]["matchLabels"]
        for one in renderings.of("sweepers-that-are-privileged")
        if one["kind"] == "DaemonSet"
    }
    own = {"app.kubernetes.io/name": "toponaut", "app.kubernetes.io/component": "agent"}
    assert found == {
        "toponaut-agent": own | {"toponaut.io/sweeps": "false"},
        "toponaut-sweeper": own | {"toponaut.io/sweeps": "true"},
    }
