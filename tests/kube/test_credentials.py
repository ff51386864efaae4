"""The sources of credentials, and the errors of unusable ones."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
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
        pytest.param("[" * 100_000, id="depth without end"),
        pytest.param("clusters: [7]\nusers: x\ncurrent-context: a", id="numbers and texts"),
        pytest.param(
            {**config("a"), "users": [{"name": "a", "user": 7}]}, id="a user that is a number"
        ),
        pytest.param(
            {**config("a"), "contexts": [{"name": "a", "context": 7}]},
            id="a context that is a number",
        ),
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


NAMED = {
    "tokenFile": ("users", "user"),
    "client-certificate": ("users", "user"),
    "client-key": ("users", "user"),
    "certificate-authority": ("clusters", "cluster"),
}


def endless(folder: Path, kind: str) -> Path:
    """Return a file that must not be read to its end."""
    if kind == "device":
        return Path("/dev/zero")
    file = folder / kind
    if kind == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as stream:
            stream.truncate(1 << 30)
    return file


@pytest.mark.parametrize("kind", ["device", "large", "pipe"])
@pytest.mark.parametrize("field", NAMED)
def test_it_does_not_read_an_endless_file_that_a_kubeconfig_names(
    tmp_path: Path, field: str, kind: str
) -> None:
    rows, part = NAMED[field]
    content = config("a", "b")
    del content["users"][0]["user"]["token"]
    for row in content[rows]:
        row[part][field] = str(endless(tmp_path, kind)) if row["name"] == "a" else "missing"
    file = write(tmp_path / "config", content)
    with pytest.raises(ConfigError, match=r"larger than|not a regular file"):
        load_kubeconfig(file)
    if field == "tokenFile":
        assert host(file, "b")[1] == "Bearer token-b", "the other user names other files"


@pytest.mark.parametrize("name", ["token", "ca.crt"])
@pytest.mark.parametrize("kind", ["device", "large", "pipe"])
def test_it_does_not_read_an_endless_file_of_a_pod(tmp_path: Path, name: str, kind: str) -> None:
    files = {one: tmp_path / one for one in ("token", "ca.crt")}
    for file in files.values():
        file.write_text("x")
    files[name] = endless(tmp_path, kind)
    with pytest.raises(ConfigError, match=r"larger than|not a regular file"):
        load_in_cluster(POD, token=files["token"], ca=files["ca.crt"])


def test_it_reads_small_files_beside_a_kubeconfig(tmp_path: Path) -> None:
    content = config("a")
    content["users"][0]["user"] = {"tokenFile": "token"}
    (tmp_path / "token").write_text("secret")
    assert host(write(tmp_path / "config", content))[1] == "Bearer secret"


def test_it_reads_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=write, args=(pipe, config("a")))
    writer.start()
    assert host(str(pipe))[0] == "https://a.invalid"
    writer.join()
