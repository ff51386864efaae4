"""One day for all tests of a module, because a start takes longer than most tests."""

from collections.abc import Iterator

import pytest

from tests.kube.bad_days.days import Day, day_of
from tests.lab.api_server import ApiServer


@pytest.fixture(scope="module")
def whole_day(spare_api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    spare_api.revive()
    with day_of(spare_api, tmp_path_factory.mktemp("day")) as found:
        yield found


@pytest.fixture
def day(whole_day: Day) -> Iterator[Day]:
    """The day between two tests: everything is well when a test begins and when it ends."""
    yield whole_day
    whole_day.proxy.relent()
    whole_day.cluster.api.resume()
    whole_day.await_tree()
    assert whole_day.generator.program.poll() is None, "it lives"
