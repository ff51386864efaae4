"""Service accounts of a real API server, and tokens of their pods."""

from typing import Any

from tests.lab.api_server import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUDIENCE = "toponaut"


class Accounts:
    """Service accounts of a namespace, and tokens of their pods."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._core = f"/api/v1/namespaces/{namespace}"

    def create(self, name: str) -> None:
        self._api.expect("POST", f"{self._core}/serviceaccounts", {"metadata": {"name": name}})
        spec = {"serviceAccountName": name, "containers": [{"name": "c", "image": "none"}]}
        self._api.expect("POST", f"{self._core}/pods", {"metadata": {"name": name}, "spec": spec})

    def let_place(self, name: str) -> None:
        """Grant the right to call, as a chart's role does."""
        role = f"placer-{self._namespace}"
        rule = {"apiGroups": ["toponaut.io"], "resources": ["placements"], "verbs": ["create"]}
        self._api.expect(
            "POST", f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": [rule]}
        )
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self._namespace}
        binding = {
            "metadata": {"name": role},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [subject],
        }
        self._api.expect("POST", f"{RBAC}/clusterrolebindings", binding)

    def token(self, name: str, audience: str = AUDIENCE) -> str:
        pod: dict[str, Any] = self._api.expect("GET", f"{self._core}/pods/{name}")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        spec = {"audiences": [audience], "expirationSeconds": 3600, "boundObjectRef": bound}
        path = f"{self._core}/serviceaccounts/{name}/token"
        answer = self._api.expect("POST", path, {"spec": spec})
        return str(answer["status"]["token"])


def create_accounts(api: ApiServer, namespace: str) -> Accounts:
    """Create the account `scheduler`, which may place, and `stranger`, which may not."""
    made = Accounts(api, namespace)
    for name in ("scheduler", "stranger"):
        made.create(name)
    made.let_place("scheduler")
    return made
