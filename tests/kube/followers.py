"""A reflector that runs in a thread, and the changes that it reported."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from time import monotonic
from typing import Any

from generator.kube.applier import Fence, never_fenced
from generator.kube.reflector import Paging, Reflector, ReflectorConfig
from generator.kube.resources import Resource
from generator.kube.transport import Transport
from generator.store.cluster_store import ClusterStore
from generator.store.fabric_store import FabricStore
from generator.store.kinds import SERVED
from runtime.retry import WaitContext
from runtime.stop import Stop
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import ConfigError

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEADLINE_S = 30
JITTER = random.Random(1).uniform  # noqa: S311 - spreads retries


class HastyStop(Stop):
    """Records the requested duration of each wait, and cuts the wait short."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float) -> bool:
        self.waits.append(timeout)
        return super().wait(min(timeout, 0.02))


def quick_settings(namespace: str) -> ReflectorConfig:
    """Return settings for the objects of one test only, with short waits."""
    return ReflectorConfig(Paging(500, 2.0, (("labelSelector", f"test={namespace}"),)))


def paged(namespace: str, page: int) -> ReflectorConfig:
    """Return the same with small pages."""
    settings = quick_settings(namespace)
    return replace(settings, paging=settings.paging._replace(page_size=page))


def parse_word(found: Mapping[str, Any]) -> str:
    """Return `name=word`; refuses one word."""
    word = found.get("data", {}).get("word", "")
    if word == "bad":
        raise ConfigError("a bad word")
    return f"{found['metadata']['name']}={word}"


def command_store(transport: Transport, *, fence: Fence = never_fenced) -> FabricStore:
    """Return the store of a command, which lists what it reads."""
    pace = WaitContext(HastyStop(), monotonic, JITTER)
    return FabricStore(ClusterStore(transport, pace=pace, fence=fence))


@contextmanager
def followed_store(
    transport: Transport, on_change: Callable[[], None] = lambda: None
) -> Iterator[FabricStore]:
    """Follow what a server reads."""
    pace = WaitContext(HastyStop(), monotonic, JITTER)
    objects = ClusterStore(transport, pace=pace, on_change=on_change, served=SERVED)
    with objects:
        yield FabricStore(objects)


class Following:
    """Follows the config maps of a namespace."""

    def __init__(self, transport: Transport, settings: ReflectorConfig) -> None:
        """Start."""
        self.stop_request = HastyStop()
        self.told: list[set[str]] = []
        """The values after each reported change."""
        self.num_parsed = 0
        self.reflector: Reflector[str] = Reflector(
            transport,
            CONFIGMAPS,
            parse=self._parse,
            on_change=lambda: self.told.append(self.words),
            pace=WaitContext(self.stop_request, monotonic, JITTER),
            config=settings,
        )
        self.thread = Thread(target=self.reflector.run)
        self.thread.start()

    @property
    def words(self) -> set[str]:
        """The values in the cache."""
        return set(self.reflector.cache.values)

    def expect(self, *words: str) -> None:
        """Wait until the cache is synced and has exactly these values."""
        wait_until(
            lambda: self._differs(set(words)), deadline_s=DEADLINE_S, what=f"knows {sorted(words)}"
        )

    def await_that(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something else."""
        wait_until(lambda: not condition(), deadline_s=DEADLINE_S, what=what)

    def expect_told(self, *steps: set[str]) -> None:
        """Check that the first list and each of these changes were reported once, as they came."""
        assert self.told[1:] == list(steps)

    def stop(self) -> None:
        """Stop it, and check that it ends."""
        self.stop_request.set()
        self.thread.join(timeout=DEADLINE_S)
        assert not self.thread.is_alive(), "it ends when that is requested"

    def _parse(self, found: Mapping[str, Any]) -> str:
        self.num_parsed += 1
        return parse_word(found)

    def _differs(self, words: set[str]) -> str:
        if self.reflector.is_synced and self.words == words:
            return ""
        return f"{sorted(self.words)} {self.reflector.problem}"


@contextmanager
def following(transport: Transport, settings: ReflectorConfig) -> Iterator[Following]:
    """Follow within the context."""
    found = Following(transport, settings)
    try:
        yield found
    finally:
        found.stop()


class Words:
    """Config maps of one namespace, written as the administrator."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._namespace = namespace

    def put(self, name: str, word: str) -> None:
        """Create or replace one."""
        labels = {"test": self._namespace}
        body = {"metadata": {"name": name, "labels": labels}, "data": {"word": word}}
        if self._api.request("POST", self._path, body).status == 409:
            self._api.expect("PUT", f"{self._path}/{name}", body)

    def drop(self, name: str) -> None:
        """Delete one."""
        self._api.expect("DELETE", f"{self._path}/{name}")
