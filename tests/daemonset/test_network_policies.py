"""The NetworkPolicies open the ports on which pods listen, by their numbers.

Some network plugins know no names of ports, and drop or refuse such a rule:
https://github.com/k8snetworkplumbingwg/kubemacpool/pull/551 and
https://github.com/rowanruseler/helm-charts/issues/28.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.daemonset.cases import CASES, Renderings
from tests.daemonset.tools import DEADLINE_S

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]
HEALTH = "health"
"""A node always reaches the probes of its own pods, so no rule opens their port."""


def ports_of(documents: list[dict[str, Any]], selector: dict[str, str]) -> set[int]:
    """Return the ports of the pods that a selector selects, without those of probes."""
    found = set()
    for one in documents:
        if one["kind"] in {"DaemonSet", "Deployment"}:
            template = one["spec"]["template"]
            if selector.items() <= template["metadata"]["labels"].items():
                ports = template["spec"]["containers"][0]["ports"]
                found |= {port["containerPort"] for port in ports if port["name"] != HEALTH}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_opens_the_ports_of_its_pods_by_number(case: Path, renderings: Renderings) -> None:
    documents = renderings.of(case.name)
    policies = [one["spec"] for one in documents if one["kind"] == "NetworkPolicy"]
    assert len(policies) == (0 if case.name == "kinds-and-fabric-of-ones-own" else 2)
    for policy in policies:
        opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
        assert {type(port) for port in opened} == {int}
        assert set(opened) == ports_of(documents, policy["podSelector"]["matchLabels"])
