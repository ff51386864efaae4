"""Reflectors with a real server and a failing network."""

import signal
from dataclasses import replace
from typing import NamedTuple

import pytest

from generator.kube.cache import Quota
from generator.kube.transport import KubeTransport
from tests.kube.conftest import connecting
from tests.kube.followers import Words, following, paged, quick_settings
from tests.kube.proxy import Fault, FaultProxy, status_body
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

WATCH = r"GET .*watch=1"
LIST = r"GET .*configmaps\?(?!.*watch)"


@pytest.fixture
def words(api: ApiServer, namespace: str) -> Words:
    found = Words(api, namespace)
    for at in range(5):
        found.put(f"w{at}", "old")
    return found


OLD = [f"w{at}=old" for at in range(5)]


def error_event(code: int, reason: str) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % status_body(code, reason, "injected")


def test_it_lists_in_pages_and_follows(
    words: Words, namespace: str, through: KubeTransport, proxy: FaultProxy
) -> None:
    with following(through, paged(namespace, 2)) as seen:
        seen.expect(*OLD)
        assert proxy.count(LIST) == 3
        assert proxy.count(r"limit=2&continue=") == 2
        words.put("w0", "new")
        words.drop("w1")
        words.put("w9", "new")
        seen.expect("w0=new", "w2=old", "w3=old", "w4=old", "w9=new")
        new = {"w0=new", *OLD[1:]}
        seen.expect_told(new, new - {"w1=old"}, new - {"w1=old"} | {"w9=new"})
        assert (seen.reflector.num_lists, seen.reflector.num_watches) == (1, 1)


def test_it_continues_after_cuts_without_a_new_list(
    words: Words, namespace: str, through: KubeTransport, proxy: FaultProxy
) -> None:
    with following(through, quick_settings(namespace)) as seen:
        seen.expect(*OLD)
        for turn in range(5):
            proxy.cut()
            words.put("w0", f"turn{turn}")
            words.drop("w1")
            words.put("w1", "old")
            seen.expect(f"w0=turn{turn}", *OLD[1:])
        assert seen.reflector.num_lists == 1
        assert seen.told[-1] == seen.words


def test_it_survives_a_crash_and_a_hang(other_api: ApiServer) -> None:
    namespace = other_api.namespace()
    words = Words(other_api, namespace)
    words.put("w0", "old")
    settings = replace(quick_settings(namespace), idle_timeout_s=1.0)
    with connecting(other_api) as transport, following(transport, settings) as seen:
        seen.expect("w0=old")
        other_api.stop(signal.SIGKILL)
        seen.await_that(lambda: bool(seen.reflector.problem), "told that the server is gone")
        assert seen.words == {"w0=old"}
        other_api.restart()
        words.put("w0", "new")
        seen.expect("w0=new")
        other_api.suspend()
        seen.await_that(lambda: bool(seen.reflector.problem), "told that the server hangs")
        other_api.resume()
        words.put("w0", "newer")
        seen.expect("w0=newer")
        assert seen.told[-1] == seen.words


@pytest.mark.parametrize(
    ("fault", "least_s"),
    [
        pytest.param(Fault(429, {"Retry-After": "7"}), 7.0, id="too many requests"),
        pytest.param(Fault(500), 0.05, id="a broken server"),
        pytest.param(Fault(403), 0.05, id="rights that come later"),
        pytest.param(Fault(404), 0.05, id="a kind that comes later"),
        pytest.param(Fault(cut_after=0), 0.05, id="a cut before the answer"),
        pytest.param(Fault(cut_after=100), 0.05, id="a cut within the list"),
        pytest.param(Fault(is_silent=True), 0.05, id="silence"),
        pytest.param(Fault(lines=(b"[]",)), 0.05, id="an answer that is no object"),
        pytest.param(Fault(lines=(b'{"items":[]}',)), 0.05, id="a list without a version"),
        pytest.param(
            Fault(lines=(b'{"metadata":{"resourceVersion":"1"},"items":[{}]}',)),
            0.05,
            id="a list of nothing known",
        ),
    ],
)
def test_it_waits_and_lists_again_after(
    words: Words,
    namespace: str,
    through: KubeTransport,
    proxy: FaultProxy,
    fault: Fault,
    least_s: float,
) -> None:
    words.put("w5", "old")
    proxy.fail(LIST, fault)
    with following(through, quick_settings(namespace)) as seen:
        seen.expect(*OLD, "w5=old")
        assert len(seen.stop_request.waits) >= 1
        assert seen.stop_request.waits[0] >= least_s
        assert seen.reflector.num_lists == 1


def test_it_lists_again_when_there_is_room_for_dropped_values(
    words: Words, namespace: str, through: KubeTransport, proxy: FaultProxy
) -> None:
    words.put("w5", "long" * 10)
    quota: Quota[str] = Quota(60, lambda name: name, len)
    settings = replace(quick_settings(namespace), quota=quota)
    with following(through, settings) as seen:
        seen.expect(*OLD)
        for at in range(4):
            words.drop(f"w{at}")
        seen.expect("w4=old")
        assert seen.reflector.num_lists == 1
        proxy.cut()
        seen.expect("w4=old", "w5=" + "long" * 10)
        assert seen.reflector.num_lists == 2
        assert seen.told[-1] == seen.words


class Refused(NamedTuple):
    """A server that can be made to refuse, and where to list."""

    proxy: FaultProxy
    through: KubeTransport
    namespace: str


@pytest.fixture
def refused(proxy: FaultProxy, through: KubeTransport, namespace: str, words: Words) -> Refused:
    words.put("w5", "old")
    return Refused(proxy, through, namespace)


@pytest.mark.parametrize(
    ("refusals", "warnings"),
    [
        pytest.param([Fault(403)] * 2, 0, id="a server that has just started"),
        pytest.param([Fault(403)] * 4, 1, id="a right that is missing"),
    ],
)
def test_it_warns_of_a_missing_right_only_if_it_stays_missing(
    refused: Refused, caplog: pytest.LogCaptureFixture, refusals: list[Fault], warnings: int
) -> None:
    refused.proxy.fail(LIST, *refusals)
    with following(refused.through, quick_settings(refused.namespace)) as seen:
        seen.expect(*OLD, "w5=old")
    said = [row.message for row in caplog.records if row.levelname == "WARNING"]
    assert said == ["cannot follow objects"] * warnings


@pytest.mark.parametrize(
    ("fault", "lists"),
    [
        pytest.param(Fault(410, body=status_body(410, "Expired", "old")), 2, id="refused as old"),
        pytest.param(Fault(lines=(error_event(410, "Expired"),)), 2, id="answered with 410"),
        pytest.param(Fault(lines=(error_event(500, "InternalError"),)), 1, id="answered with 500"),
        pytest.param(
            Fault(lines=(error_event(429, "TooManyRequests"),)), 1, id="answered with 429"
        ),
        pytest.param(Fault(lines=(b"{not json\n",)), 2, id="answered with junk"),
        pytest.param(Fault(lines=(b'{"type":"ADDED"}\n',)), 2, id="answered with half an event"),
        pytest.param(
            Fault(lines=(b'{"type":"NEW","object":{"metadata":{"resourceVersion":"9"}}}\n',)),
            2,
            id="answered with an unknown event",
        ),
        pytest.param(Fault(lines=(b'{"type":"ADDED","object":{"meta',)), 1, id="cut in an event"),
        pytest.param(Fault(429, {"Retry-After": "1"}), 1, id="refused for a while"),
        pytest.param(Fault(is_silent=True), 1, id="left in silence"),
    ],
)
def test_it_follows_again_after_its_watch_was(
    words: Words,
    namespace: str,
    through: KubeTransport,
    proxy: FaultProxy,
    fault: Fault,
    lists: int,
) -> None:
    proxy.fail(WATCH, fault)
    with following(through, replace(quick_settings(namespace), idle_timeout_s=0.5)) as seen:
        seen.expect(*OLD)
        words.put("w0", "new")
        seen.expect("w0=new", *OLD[1:])
        assert seen.reflector.num_lists == lists
        assert seen.told[-1] == seen.words
        assert len(seen.stop_request.waits) >= 1, "it does not come back at once"


def test_it_loses_nothing_when_a_list_is_interrupted(
    words: Words, namespace: str, through: KubeTransport, proxy: FaultProxy
) -> None:
    with following(through, paged(namespace, 2)) as seen:
        seen.expect(*OLD)
        seen.await_that(lambda: proxy.count(WATCH) > 0, "a watch")
        proxy.fail(WATCH, Fault(lines=(error_event(410, "Expired"),)))
        proxy.fail("continue=", *[Fault(500)] * 20)
        proxy.cut()
        seen.await_that(lambda: len(seen.stop_request.waits) > 8, "failures")
        assert seen.words == set(OLD)
        proxy.relent()
        words.drop("w4")
        seen.expect(*OLD[:4])
        seen.expect_told(set(OLD[:4]))


def test_it_continues_from_a_bookmark(
    words: Words, namespace: str, through: KubeTransport, proxy: FaultProxy
) -> None:
    with following(through, quick_settings(namespace)) as seen:
        seen.expect(*OLD)
        words.put("w0", "new")
        seen.expect("w0=new", *OLD[1:])
        newest = max(row.version for row in seen.reflector.cache.listing.objects)
        mark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n'
        proxy.fail(WATCH, Fault(lines=(mark % int(newest),)))
        proxy.cut()
        seen.await_that(lambda: proxy.count(f"watch=1.*resourceVersion={newest}") > 1, "a watch on")
        assert seen.reflector.num_lists == 1


def test_it_backs_off_from_a_watch_that_ends_at_once(
    words: Words, namespace: str, through: KubeTransport, proxy: FaultProxy
) -> None:
    proxy.fail(WATCH, *[Fault(lines=(b"",))] * 12)
    with following(through, quick_settings(namespace)) as seen:
        seen.expect(*OLD)
        words.put("w0", "new")
        seen.expect("w0=new", *OLD[1:])
        pauses = seen.stop_request.waits
        assert all(
            least <= pause <= 10 * least
            for pause, least in zip(pauses, [0.05 * 2**n for n in range(6)], strict=False)
        )
        assert max(pauses) <= 30
        assert min(pauses[6:12]) >= 3


def test_it_loses_only_the_bad_object(words: Words, namespace: str, through: KubeTransport) -> None:
    words.put("w0", "bad")
    with following(through, quick_settings(namespace)) as seen:
        seen.expect(*OLD[1:])
        assert [str(it) for it in seen.reflector.cache.listing.all_problems] == [
            f"{namespace}/w0: a bad word"
        ]
        words.put("w0", "good")
        words.put("w1", "bad")
        seen.expect("w0=good", *OLD[2:])
        assert [str(it) for it in seen.reflector.cache.listing.all_problems] == [
            f"{namespace}/w1: a bad word"
        ]
        assert seen.told[-1] == seen.words
