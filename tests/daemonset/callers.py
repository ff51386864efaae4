"""Callers of the lab's API server by tokens as pods get them, and what they are answered."""

import http.client
import secrets
from collections.abc import Mapping
from typing import Any

from tests.daemonset.tools import NAMESPACE
from tests.lab.api_server import APPLY, JSON, Answer, ApiServer
from tests.lab.wait import wait_until


class Caller:
    """Whoever holds a token."""

    def __init__(self, api: ApiServer, token: str) -> None:
        """Take the token; nothing is asked yet."""
        self.token = token
        self._connection = api.connect(token)

    def ask(self, method: str, path: str, body: object = None, *, form: str = JSON) -> Answer:
        """Ask; any status is an answer, but for the moments after a CRD was written."""
        answers: list[Answer] = []
        headers = {"Content-Type": form, "Accept": JSON}

        def is_busy() -> bool:
            answers.append(self._connection.ask(method, path, body, headers))
            return answers[-1].status == http.client.TOO_MANY_REQUESTS

        wait_until(is_busy, deadline_s=60, what=f"the storage of {path}")
        return answers[-1]

    def apply(self, path: str, body: Mapping[str, Any], *, query: str = "") -> Answer:
        """Apply an object on the server's side, as our programs do; it is named as the path is."""
        asked = f"{path}?fieldManager=test&force=true{query}"
        return self.ask("PATCH", asked, named(path, body), form=APPLY)


def named(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the name that a path of it or of its status has."""
    name = path.removesuffix("/status").rsplit("/", 1)[1]
    return {**body, "metadata": {**body.get("metadata", {}), "name": name}}


def make_node(api: ApiServer) -> dict[str, Any]:
    """Make a node that no other test has, and return it."""
    name = f"node-{secrets.token_hex(4)}"
    labels = {"rack": "r1", "toponaut.io/old": "1"}
    return api.expect("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})


def on_node(
    api: ApiServer, account: str, node: str, *, pod: str = "pod", namespace: str = NAMESPACE
) -> Caller:
    """Return a caller with the token that a kubelet mounts into this account's pod on this node."""
    name = f"{pod}-{secrets.token_hex(4)}"
    body = {
        "metadata": {"name": name},
        "spec": {
            "serviceAccountName": account,
            "nodeName": node,
            "containers": [{"name": "main", "image": "main"}],
        },
    }
    made = api.expect("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": made["metadata"]["uid"]}
    spec = {"expirationSeconds": 3600, "boundObjectRef": bound}
    return _caller(api, account, spec, namespace=namespace)


def on_no_node(api: ApiServer, account: str) -> Caller:
    """Return a caller with a token of this account that is bound to no pod."""
    return _caller(api, account, {"expirationSeconds": 3600}, namespace=NAMESPACE)


def _caller(api: ApiServer, account: str, spec: Mapping[str, Any], *, namespace: str) -> Caller:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    made = api.expect("POST", f"{accounts}/{account}/token", asked)
    return Caller(api, made["status"]["token"])
