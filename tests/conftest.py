"""What every test folder shares: golden files, how much is logged, a policy for property tests."""

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import IS_ALL, examples
from tests.golden import Golden

# A loaded machine is no failure: the time limit of a test is pytest's, not each example's. Under
# CI the examples are the same every time, so that its verdict depends on the change alone; every
# other run explores further. `examples` scales the laws that say how many examples they want.
settings.register_profile(
    "quick",
    deadline=None,
    max_examples=examples(100),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.register_profile("all", settings.get_profile("quick"), max_examples=100)
settings.load_profile("all" if IS_ALL else "quick")


_SERVED = frozenset(
    {
        "daemonset/test_agent_rights",
        "daemonset/test_generator_rights",
        "daemonset/test_sweeper_rights",
        "kube/test_agent_publishing",
        "kube/test_applier",
        "kube/test_crds_server",
        "kube/test_events",
        "kube/test_every_output",
        "kube/test_exports",
        "kube/test_history_object",
        "kube/test_reservations",
        "kube/test_tokens",
    }
)
"""Modules about what the API server itself accepts, refuses, owns, records and reviews. The other
tests of a cluster are about time, failures and commands."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that also run on an older Kubernetes."""
    if f"{item.path.parent.name}/{item.path.stem}" in _SERVED:
        item.add_marker(pytest.mark.served)


def pytest_xdist_auto_num_workers() -> int:
    """Return more workers than cores, as the labs wait more than they compute."""
    cores = os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Deliver the signals that a background shell or nohup ignores: started programs inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the group of a test into its id, by which pytest-xdist keeps a group on one worker.

    pytest-xdist 3.8 does so itself, but under pytest 9.2 without effect: each worker then builds
    the fabrics and servers of every lab.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = type(item.id).parse(f"{item.nodeid}@{mark.args[0]}")  # noqa: SLF001
    groups = [item for item in items if item.get_closest_marker("xdist_group")]
    assert all("@" in item.nodeid for item in groups), "groups of tests are not kept together"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite expected files; see the diff")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare with a file, or rewrite it."""
    return Golden(is_rewriting=bool(request.config.getoption("--golden")))


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Undo what a program that ran in this process has set: all else would log as it does."""
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)
