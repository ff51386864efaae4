"""The sources of credentials, and the errors of unusable ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.kube.credentials import find_credentials, load_in_cluster, load_kubeconfig
from topology.model.errors import ConfigError

POD = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}


def config(*names: str) -> dict[str, Any]:
    """Return a kubeconfig with a context, cluster and user of each name; the first is current."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{name}.invalid"}} for name in names
        ],
        "users": [{"name": name, "user": {"token": f"token-{name}"}} for name in names],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
        "current-context": names[0],
    }


def write(file: Path, content: object) -> str:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


def host(
    kubeconfig: str | None = None, context: str | None = None, **environ: str
) -> tuple[str, str | None]:
    found = find_credentials(kubeconfig=kubeconfig, context=context, environ=environ)()
    return found.host, found.get_api_key_with_prefix("BearerToken")


def test_it_prefers_the_given_file(tmp_path: Path) -> None:
    named = write(tmp_path / "named", config("one", "two"))
    other = write(tmp_path / "other", config("three"))
    assert host(named, KUBECONFIG=other, **POD) == ("https://one.invalid", "Bearer token-one")
    assert host(named, "two")[0] == "https://two.invalid"
    assert host(KUBECONFIG=other, **POD)[0] == "https://three.invalid"
    assert host(KUBECONFIG=f"{other}:{named}", context="two")[0] == "https://two.invalid"


def test_it_uses_the_pods_token_if_no_file_is_given() -> None:
    with pytest.raises(ConfigError, match="credentials of the pod: Service token file"):
        host(**POD)


def test_it_reads_a_pods_token(tmp_path: Path) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret")
    ca.write_text("not looked at yet")
    found = load_in_cluster(POD, token=token, ca=ca)
    assert found.host == "https://[fd00::1]:443"
    assert found.get_api_key_with_prefix("BearerToken") == "bearer secret"
    assert found.retries is False


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="half a document"),
        pytest.param("[]", id="a list"),
        pytest.param("clusters: 7", id="no clusters"),
        pytest.param({**config("a"), "current-context": "b"}, id="a context that is not there"),
        pytest.param({**config("a"), "clusters": []}, id="no such cluster"),
        pytest.param("a: \x00", id="a byte that is no text"),
    ],
)
def test_it_reports_why_a_file_is_not_usable(
    tmp_path: Path, content: str | Mapping[str, Any]
) -> None:
    file = write(tmp_path / "config", content)
    with pytest.raises(ConfigError) as told:
        load_kubeconfig(file)
    assert str(told.value).startswith(f"kubeconfig {file}: ")
    assert "token-a" not in str(told.value)
    assert "\n" not in str(told.value)
