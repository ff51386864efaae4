"""Each program starts with its own extra alone: what the other needs may be missing."""

import json
import subprocess
import sys

import pytest

from tests.repository import ROOT

pytestmark = pytest.mark.wheel

# Imports a module with some packages made unimportable, then prints what got loaded.
PROBE = """
import importlib, json, sys
for name in sys.argv[2:]:
    sys.modules[name] = None
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(name for name, module in sys.modules.items() if module)))
"""
GENERATOR_ONLY = ("google", "grpc", "kubernetes", "numpy", "pysnmp", "rich", "starlette", "uvicorn")


def python(*arguments: str) -> str:
    """Run the interpreter of the tests and return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(module: str, *, without: tuple[str, ...] = ()) -> set[str]:
    loaded = json.loads(python("-c", PROBE, module, *without))
    return {name.split(".")[0] for name in loaded}


def test_it_starts_the_agent_without_the_packages_of_the_generator() -> None:
    assert "agent" in loaded_by("agent.cli.commands", without=(*GENERATOR_ONLY, "scapy"))


def test_it_keeps_the_agent_light_even_where_everything_is_installed() -> None:
    assert not loaded_by("agent.cli.commands") & {*GENERATOR_ONLY, "scapy", "generator"}


def test_it_starts_the_generator_without_scapy() -> None:
    assert "generator" in loaded_by("generator.cli.group", without=("scapy",))


def test_it_loads_numpy_and_grpc_only_when_a_command_needs_them() -> None:
    assert not loaded_by("generator.cli.group") & {"numpy", "grpc", "rich", "agent"}


def test_it_loads_the_web_server_only_when_the_page_is_served() -> None:
    assert not loaded_by("generator.server.server") & {"starlette", "uvicorn", "anyio"}
    assert loaded_by("generator.server.page_port") >= {"starlette", "uvicorn"}


@pytest.mark.parametrize("program", ["agent", "generator"])
def test_it_runs_as_a_module(program: str) -> None:
    assert "0.1.0" in python("-m", program, "--version")
