"""Options that `toponaut serve` refuses, and the namespace of a replica."""

from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.server.replica import DEFAULT_NAMESPACE, find_namespace
from tests.generator.scenes import run

LOOPBACK = ("--insecure-loopback", "--listen", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param((), "either --store or --kube", id="no store is given"),
        pytest.param(
            ("--kube", "--store", "."), "either --store or --kube", id="two stores are given"
        ),
        pytest.param(
            ("--store", ".", "--namespace", "x"), "need --kube", id="a namespace has no cluster"
        ),
        pytest.param(
            ("--store", ".", "--context", "x"), "need --kube", id="a context has no cluster"
        ),
        pytest.param(
            ("--kube", "--nodes", __file__), "--kube reads the nodes", id="nodes are given twice"
        ),
    ],
)
def test_it_refuses_to_serve_if(words: tuple[str, ...], why: str) -> None:
    ran = run("serve", *words, *LOOPBACK)
    assert ran.code == ExitCode.USAGE
    assert why in ran.err


def test_it_uses_the_given_namespace_or_that_of_its_token(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert find_namespace({}, file) == DEFAULT_NAMESPACE
    file.write_text("fabric\n")
    assert find_namespace({}, file) == "fabric"
    assert find_namespace({"POD_NAMESPACE": "here"}, file) == "here"
