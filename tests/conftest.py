"""What every test folder shares: golden files, how much is logged, a policy for property tests."""

import gc
import logging
import os
import signal
from collections.abc import Iterator
from functools import cached_property

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

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
    """Return a worker for each core, and as many and one more for the labs, which mostly wait."""
    return 2 * (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Start from the environment of a new user: started programs inherit it.

    A variable of Toponaut or of a cluster would set options of the commands that are tested. A
    background shell or nohup ignores signals that the tests send.
    """
    for name in [one for one in os.environ if one.startswith(("TOPONAUT_", "KUBECONFIG"))]:
        del os.environ[name]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


class _Scheduler(LoadGroupScheduling):  # type: ignore[misc]  # it has no types
    """Gives a worker all tests of a group, or of a file, at once.

    More than half of the workers run groups, and the others files, while both are left: a group
    is a lab that mostly waits for its programs, and files keep the cores busy meanwhile.
    pytest-xdist gives out single tests and then, at each report, counts all that it ever gave out:
    half a minute of a core for 12,000 tests. It also looks each test up in the list of all.
    """

    def _split_scope(self, nodeid: str) -> str:
        scope = str(super()._split_scope(nodeid))
        # Each test of a benchmark is a program of its own, and takes minutes.
        return scope if scope.startswith("tests/bench/") else scope.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [one for one in self.nodes if one is not node]
        num_labs = sum(self._runs_lab(one) for one in others)
        is_lab_wanted = num_labs <= len(others) // 2
        scopes = (scope for scope in self.workqueue if _is_lab(scope) is is_lab_wanted)
        scope = next(scopes, next(iter(self.workqueue)))
        unit = self.assigned_work[node][scope] = self.workqueue.pop(scope)
        node.send_runtest_some(
            [self._places[nodeid] for nodeid, is_done in unit.items() if not is_done]
        )

    def _runs_lab(self, node: WorkerController) -> bool:
        units = self.assigned_work[node].items()
        return any(_is_lab(scope) and not all(unit.values()) for scope, unit in units)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {nodeid: at for at, nodeid in enumerate(self.collection)}


def _is_lab(scope: str) -> bool:
    """Return whether a scope is the name of a group, and not a file or a test."""
    return "/" not in scope


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Scheduler | None:
    """Schedule whole files, in the order of `pytest_collection_modifyitems`."""
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return _Scheduler(config, log)


_LONGEST = ("kube serving", "kube outputs", "kube", "chart", "page", "pages", "live", "lldpd")
"""The groups that take longest begin first, so that no worker is left with one at the end."""


_LAW_LIMIT_S = 600
"""A law that writes files takes a minute with all its examples, and longer on a loaded machine."""


def _is_law(item: pytest.Item) -> bool:
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


def _turn(item: pytest.Item) -> int:
    mark = item.get_closest_marker("xdist_group")
    if mark is None:
        is_long = _is_law(item) or item.get_closest_marker("long") is not None
        return len(_LONGEST) + (1 if is_long else 2)
    return _LONGEST.index(mark.args[0]) if mark.args[0] in _LONGEST else len(_LONGEST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give long laws more time, and put the group of a test into its id.

    By its id pytest-xdist keeps a group on one worker.
    pytest-xdist 3.8 does so itself, but under pytest 9.2 without effect: each worker then builds
    the fabrics and servers of every lab. What takes longest begins first: groups, then long tests
    and laws.
    """
    for item in items:
        if IS_ALL and _is_law(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_LAW_LIMIT_S))
    if not getattr(config.option, "loadgroup", False):
        return
    items.sort(key=_turn)
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = type(item.id).parse(f"{item.nodeid}@{mark.args[0]}")  # noqa: SLF001
    groups = [item for item in items if item.get_closest_marker("xdist_group")]
    assert all("@" in item.nodeid for item in groups), "groups of tests are not kept together"


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all tests and modules, and run less often.

    They are never garbage, and looking for some among them took a quarter of the processor time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
