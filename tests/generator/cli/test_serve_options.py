"""What `toponaut serve` refuses to begin with, and where a replica finds itself."""

from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.server.replica import DEFAULT_NAMESPACE, find_namespace
from tests.generator.scenes import run

LOOPBACK = ("--insecure-loopback", "--listen", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param((), "either --store or --kube", id="no store is named"),
        pytest.param(("--kube", "--store", "."), "either --store or --kube", id="two are named"),
        pytest.param(("--store", ".", "--namespace", "x"), "need --kube", id="a Lease's place"),
        pytest.param(("--store", ".", "--context", "x"), "need --kube", id="a context"),
        pytest.param(("--kube", "--nodes", __file__), "--kube reads the nodes", id="nodes twice"),
    ],
)
def test_it_refuses_to_serve_where(words: tuple[str, ...], why: str) -> None:
    ran = run("serve", *words, *LOOPBACK)
    assert ran.code == ExitCode.USAGE
    assert why in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param((), "either --store or --kube", id="no store is named"),
        pytest.param(("--store", ".", "--kube"), "either --store or --kube", id="two are named"),
        pytest.param(("--store", ".", "--kubeconfig", "x"), "need --kube", id="credentials"),
    ],
)
def test_it_approves_nothing_where(words: tuple[str, ...], why: str) -> None:
    ran = run("approve", "0" * 16, *words)
    assert ran.code == ExitCode.USAGE
    assert why in ran.err


def test_it_is_in_the_namespace_that_it_is_told_or_that_of_its_token(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert find_namespace({}, file) == DEFAULT_NAMESPACE
    file.write_text("fabric\n")
    assert find_namespace({}, file) == "fabric"
    assert find_namespace({"POD_NAMESPACE": "here"}, file) == "here"
