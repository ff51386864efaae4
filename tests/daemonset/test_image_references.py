"""The references of images that the chart makes, for every form of a registry."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.daemonset.tools import DEADLINE_S, render
from tests.documents import parse_documents

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]
DIGEST: Final = "sha256:" + "0f" * 32
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
REFERENCE: Final = re.compile(
    rf"(?:(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::\w[\w.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
"""Source: the grammar of github.com/distribution/reference."""
REGISTRIES: Final = (
    "toponaut",
    "localhost",
    "localhost:5000",
    "registry.example.org",
    "Registry.example.org/team/toponaut",
    "registry.example.org:5000/toponaut",
    "registry:5000",
    "192.0.2.5:5000/toponaut",
    "[2001:db8::5]/toponaut",
    "[2001:db8::5]:5000",
    "[::1]:5000/a/b-c/d__e/f.g",
    "123456789012.dkr.ecr.eu-west-1.amazonaws.com/infra",
)
NO_REGISTRIES: Final = {
    "an address of the web": "https://registry.example.org/toponaut",
    "an address of Helm": "oci://registry.example.org/toponaut",
    "a slash at the end": "registry.example.org/toponaut/",
    "a tag": "registry.example.org/toponaut:0.1.0",
    "a digest": f"registry.example.org/toponaut@{DIGEST}",
    "a port that is no number": "registry.example.org:https/toponaut",
    "an address without brackets": "2001:db8::5/toponaut",
    "an open bracket": "[2001:db8::5:5000/toponaut",
    "a path in capitals": "registry.example.org/Toponaut",
    "nothing": "",
}


def images(home: Path, *settings: str) -> dict[str, str]:
    """Return the image of each program."""
    answer = render(settings=settings, home=home)
    assert answer.returncode == 0, answer.stderr
    pods = (
        one["spec"]["template"]["spec"]
        for one in parse_documents(answer.stdout)
        if one["kind"] in {"DaemonSet", "Deployment"}
    )
    return {pod["containers"][0]["name"]: pod["containers"][0]["image"] for pod in pods}


@pytest.mark.parametrize("registry", REGISTRIES)
def test_it_builds_a_reference_of(registry: str, tmp_path: Path) -> None:
    found = images(tmp_path, f"image.registry={registry}", "image.tag=1.2")
    assert found == {name: f"{registry}/{name}:1.2" for name in ("agent", "generator")}
    assert all(REFERENCE.fullmatch(one) for one in found.values())


def test_it_has_no_tag_beside_a_digest(tmp_path: Path) -> None:
    """Podman and older CRI-O refuse both."""
    settings = ["image.registry=registry:5000", "image.tag=1.2", f"image.digests.agent={DIGEST}"]
    found = images(tmp_path, *settings)
    assert found == {
        "agent": f"registry:5000/agent@{DIGEST}",
        "generator": "registry:5000/generator:1.2",
    }
    assert all(REFERENCE.fullmatch(one) for one in found.values())


def test_a_digest_is_of_the_image_that_the_mode_uses(tmp_path: Path) -> None:
    settings = ["agent.mode=frames", f"image.digests.agent-frames={DIGEST}"]
    assert images(tmp_path, *settings)["agent"] == f"toponaut/agent-frames@{DIGEST}"


@pytest.mark.parametrize("registry", NO_REGISTRIES)
def test_it_refuses_as_registry(registry: str, tmp_path: Path) -> None:
    answer = render(settings=[f"image.registry={NO_REGISTRIES[registry]}"], home=tmp_path)
    assert answer.returncode != 0
    assert "registry" in answer.stderr
