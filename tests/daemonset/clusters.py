"""Helm on the lab's API server, and all that is on that server."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

from tests.daemonset.tools import CHART, NAMESPACE, find_tool, run
from tests.lab.api_server import ApiServer, find_assets
from tests.lab.wait import wait_until

# Made by the server itself, at times of its own; the chart makes none of these.
_SERVERS = frozenset(
    {
        "configmaps in kube-system",
        "endpoints in default",
        "endpointslices.discovery.k8s.io in default",
        "events in default",
        "events.events.k8s.io in default",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "ipaddresses.networking.k8s.io",
        "leases.coordination.k8s.io in kube-system",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "servicecidrs.networking.k8s.io",
        "services in default",
    }
)
_SPACES = frozenset(
    ("namespaces", name) for name in ("default", "kube-node-lease", "kube-public", "kube-system")
)


@contextmanager
def bare_cluster(folder: Path) -> Iterator[ApiServer]:
    """Yield a server with Volcano's kinds, as it is before Toponaut."""
    with ApiServer(find_assets("programs"), folder) as server:
        server.install_all(find_assets("crds"))
        yield server


class Release:
    """The chart on one server."""

    def __init__(self, api: ApiServer, home: Path) -> None:
        """Install nothing yet; Helm's own files go into `home`."""
        self._api = api
        self._home = home
        self._kubeconfig = api.kubeconfig()

    def install(self, *options: str) -> "CompletedProcess[str]":
        """Install or upgrade the chart as docs/install.md says."""
        argv = ["upgrade", "--install", "toponaut", CHART, "--create-namespace", *options]
        return self._helm(*argv)

    def uninstall(self) -> "CompletedProcess[str]":
        """Take the chart away."""
        return self._helm("uninstall", "toponaut")

    def _helm(self, *argv: object) -> "CompletedProcess[str]":
        where = [f"--namespace={NAMESPACE}", f"--kubeconfig={self._kubeconfig}"]
        answer = run([find_tool("helm"), *argv, *where], home=self._home)
        assert answer.returncode == 0, answer.stderr
        return answer


def inventory(api: ApiServer) -> frozenset[tuple[str, str]]:
    """Return every object of the server, as its kind with its namespace, and its name."""
    found = frozenset(
        (f"{resource} in {namespace}" if namespace else resource, name)
        for resource, path in _lists(api)
        for namespace, name in _names(api, path)
    )
    return frozenset(one for one in found - _SPACES if one[0] not in _SERVERS)


def _lists(api: ApiServer) -> Iterator[tuple[str, str]]:
    """Yield each kind of objects that can be listed, and where."""
    groups = api.expect("GET", "/apis")["groups"]
    versions = [("", "/api/v1")]
    versions += [
        (group["name"], f"/apis/{group['preferredVersion']['groupVersion']}") for group in groups
    ]
    for group, path in versions:
        for one in api.expect("GET", path)["resources"]:
            if "list" in one["verbs"]:
                yield (
                    ".".join(part for part in (one["name"], group) if part),
                    f"{path}/{one['name']}",
                )


def _names(api: ApiServer, path: str) -> Iterator[tuple[str, str]]:
    # A kind that has just been changed is not listed for a moment.
    wait_until(
        lambda: api.request("GET", path).status == http.client.TOO_MANY_REQUESTS,
        deadline_s=60,
        what=f"the storage of {path}",
    )
    for item in api.expect("GET", path)["items"] or ():
        metadata = item["metadata"]
        yield metadata.get("namespace", ""), metadata["name"]
