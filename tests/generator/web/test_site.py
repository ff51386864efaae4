"""The page over HTTP: who may read it, what it sends, and what it refuses."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.history.history_file import HistoryWriter
from generator.objects.fabric import HeldPlan
from generator.objects.pods import BoundPod
from generator.rpc.status_errors import CallFailure, FailureKind
from generator.web.login import MAX_FORM_BYTES
from generator.web.site import POLICY
from tests.generator.rpc.credentials import Pki, Tokens
from tests.generator.web.sites import APPROVE, TREE, Site, outcome_of, serving, sources_of, tree_of
from topology.model.errors import ConfigError

HOSTILE = "</script><script>alert(1)</script>"
FORBIDDEN = CallFailure(FailureKind.FORBIDDEN, "bob may not create placements.toponaut.io")
SILENT = CallFailure(FailureKind.REVIEW_UNAVAILABLE, "the API server cannot be asked")
OPEN_PATHS = ("/libraries.js", "/page.js", "/page.css", "/login")
PATHS = ("/", "/document.json", *OPEN_PATHS, "/absent")


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


def trust(pki: Pki) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=pki.ca)
    context.check_hostname = False
    return context


@pytest.fixture(scope="module")
def guarded(pki: Pki) -> Iterator[Site]:
    """A page that needs a token."""
    tokens = Tokens({"alice": None, "bob": FORBIDDEN, "carol": SILENT, "<b>": FORBIDDEN})
    with serving(tokens, tls=pki.files, context=trust(pki)) as site:
        site.show(outcome_of(TREE, "node-1"))
        yield site


@pytest.fixture(scope="module")
def local() -> Iterator[Site]:
    """A page on this machine, without tokens."""
    with serving() as site:
        site.show(outcome_of(TREE, "node-1"))
        yield site


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param({}, 401, id="no token"),
        pytest.param({"Authorization": "Bearer alice"}, 200, id="the token of a user"),
        pytest.param({"Authorization": "Bearer mallory"}, 401, id="an unknown token"),
        pytest.param({"Authorization": "Bearer bob"}, 403, id="a user without the right"),
        pytest.param({"Authorization": "Bearer carol"}, 503, id="no review"),
        pytest.param({"Authorization": "Basic alice"}, 401, id="another scheme"),
        pytest.param({"Authorization": "Bearer " + "x" * 20_000}, 401, id="a huge token"),
        pytest.param({"Cookie": "toponaut-token=alice"}, 200, id="a cookie"),
        pytest.param({"Cookie": "toponaut-token=mallory"}, 401, id="a wrong cookie"),
        pytest.param(
            {"Authorization": "Basic x", "Cookie": "toponaut-token=alice"},
            401,
            id="a header before a cookie",
        ),
    ],
)
def test_the_document_needs_a_token(guarded: Site, header: dict[str, str], status: int) -> None:
    answer = guarded.ask("/document.json", headers=header)
    assert answer.status == status
    assert (b"node-1" in answer.body) == (status == 200)


def test_without_a_token_the_page_leads_to_the_login(guarded: Site) -> None:
    answer = guarded.ask("/")
    assert (answer.status, answer.headers["location"]) == (303, "login")
    assert 'name="token"' in guarded.ask("/login").text


def test_nothing_that_is_open_without_a_token_depends_on_the_fabric(guarded: Site) -> None:
    for path in OPEN_PATHS:
        assert b"node-1" not in guarded.ask(path).body


def test_the_login_keeps_the_token_in_a_cookie_for_this_page_alone(guarded: Site) -> None:
    answer = guarded.log_in("alice")
    assert (answer.status, answer.headers["location"]) == (303, "./")
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "Secure", "SameSite=Strict"):
        assert part in cookie
    for part in ("Path", "Domain", "Expires", "Max-Age"):
        assert part.lower() not in cookie.lower()
    assert guarded.ask("/document.json", Cookie=answer.cookie).status == 200
    page = guarded.ask("/", Cookie=answer.cookie)
    assert 'action="logout"' in page.text


def test_the_logout_removes_the_cookie(guarded: Site) -> None:
    answer = guarded.ask("/logout", method="POST", body=b"", Cookie="toponaut-token=alice")
    assert (answer.status, answer.headers["location"]) == (303, "login")
    assert 'toponaut-token=""; ' in answer.headers["set-cookie"]
    assert "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    ("token", "why"),
    [
        pytest.param("mallory", "the token is not valid here", id="unknown"),
        pytest.param("bob", "bob may not create", id="without the right"),
        pytest.param("carol", "cannot be asked", id="not reviewed"),
        pytest.param("", "not a token", id="empty"),
        pytest.param("a%3B+Path%3D%2F", "not a token", id="with another field of a cookie"),
        pytest.param("a%0D%0ASet-Cookie%3A+x", "the token is not valid here", id="with line ends"),
        pytest.param("%FF%FE", "not a token", id="of strange bytes"),
        pytest.param("x" * 5000, "not a token", id="longer than a cookie"),
    ],
)
def test_the_login_says_why_it_refuses_a_token(guarded: Site, token: str, why: str) -> None:
    answer = guarded.log_in(token)
    assert answer.status == 401
    assert why in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        pytest.param({}, True, id="nothing, as programs do"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, True, id="the same origin"),
        pytest.param({"Sec-Fetch-Site": "none"}, True, id="no site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, False, id="another host of the site"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, False, id="another site"),
        pytest.param({"Sec-Fetch-Site": ""}, False, id="an empty site"),
        pytest.param({"Origin": "https://{host}"}, True, id="the origin of the page"),
        pytest.param({"Origin": "HTTPS://{host}"}, True, id="its origin in capitals"),
        pytest.param({"Origin": "https://evil.example"}, False, id="the origin of another page"),
        pytest.param({"Origin": "https://{host}.evil.example"}, False, id="a longer name"),
        pytest.param({"Origin": "https://evil@{host}"}, False, id="a name with a user"),
        pytest.param({"Origin": "null"}, False, id="an origin that is hidden"),
        pytest.param({"Origin": ""}, False, id="an empty origin"),
        pytest.param({"Origin": "ftp://{host}"}, False, id="another protocol"),
        pytest.param(
            {"Origin": "https://proxy.example", "Sec-Fetch-Site": "same-origin"},
            True,
            id="the same origin behind a proxy that renames the host",
        ),
        pytest.param(
            {"Origin": "https://{host}", "Sec-Fetch-Site": "cross-site"},
            False,
            id="another site in spite of the origin",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_a_form_is_accepted_by_where_it_is_from(
    guarded: Site, path: str, headers: dict[str, str], *, is_own: bool
) -> None:
    host = guarded.port.address
    sent = {name: value.format(host=host) for name, value in headers.items()}
    answer = guarded.ask(path, method="POST", body=b"token=alice", headers=sent)
    assert answer.status == (303 if is_own else 403)
    assert ("set-cookie" in answer.headers) == is_own


@pytest.mark.parametrize(
    "path",
    [
        *(f"{path}/" for path in PATHS[1:]),
        "//evil.example",
        "//evil.example/login/",
        "/login//",
        "/login/?next=https://evil.example",
        "/%2e%2e/login/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_no_redirect_leads_to_a_host_that_the_request_names(
    guarded: Site, method: str, path: str
) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    answer = guarded.ask(path, method=method, body=b"", headers=headers)
    assert "evil.example" not in str(answer.headers)
    assert answer.status in {404, 405}


def test_a_form_that_is_too_large_is_refused(guarded: Site) -> None:
    assert guarded.log_in("x" * MAX_FORM_BYTES).status == 413


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_a_strict_policy_and_is_not_cached(guarded: Site, path: str) -> None:
    headers = guarded.ask(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_policy_allows_no_inline_script_and_the_page_has_none(guarded: Site) -> None:
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    for page in (guarded.ask("/", Authorization="Bearer alice"), guarded.ask("/login")):
        scripts = re.findall(r"<script[^>]*>", page.text)
        assert all("src=" in tag or "application/json" in tag for tag in scripts)
        assert not re.search(r"<style|\bon[a-z]+=|\bstyle=|https?://", page.text)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/document.json", "/page.js", "/page.css"])
def test_it_takes_no_other_method_than_get(local: Site, method: str, path: str) -> None:
    answer = local.ask(path, method=method)
    assert answer.status == 405
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_forms_take_only_their_method(local: Site, method: str, path: str) -> None:
    assert local.ask(path, method=method).status == 405


def test_without_tokens_it_answers_everybody_on_this_machine(local: Site) -> None:
    page = local.ask("/")
    assert page.status == 200
    assert "logout" not in page.text
    assert local.ask("/document.json").document["findings"][0]["device"] == "node-1"
    assert local.ask("/login").headers["location"] == "./"
    assert "set-cookie" not in local.log_in("alice").headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:9", 200),
        ("[::1]:9811", 200),
        ("rebound.example.org", 421),
        ("localhost.example.org:80", 421),
        ("", 421),
    ],
)
def test_on_this_machine_it_refuses_foreign_names(local: Site, host: str, status: int) -> None:
    answer = local.ask("/document.json", Host=host)
    assert answer.status == status
    assert answer.headers["content-security-policy"] == POLICY


def test_without_certificates_it_listens_on_loopback_only() -> None:
    with pytest.raises(ConfigError, match="loopback"), serving() as site:
        type(site.port)("0.0.0.0:0", sources_of(), tls=None, tokens=None)


def test_before_the_first_tree_it_says_so() -> None:
    with serving() as site:
        answer = site.ask("/document.json")
        assert (answer.status, answer.text) == (503, "no tree is known yet; try again\n")


def test_hostile_names_are_data_of_the_document_and_never_markup() -> None:
    with serving() as site:
        site.show(outcome_of(tree_of(HOSTILE), HOSTILE))
        assert HOSTILE.encode() not in site.ask("/").body
        answer = site.ask("/document.json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.document["findings"][0]["device"].startswith("</script>")


def test_every_address_of_the_page_is_relative_so_that_a_proxy_may_add_a_path(
    guarded: Site,
) -> None:
    pages = [guarded.ask("/", Authorization="Bearer alice").text, guarded.ask("/login").text]
    links = re.findall(r'(?:href|src|action)="([^"]*)"', "".join(pages))
    assert {"page.js", "page.css", "login", "logout"} <= set(links)
    assert not [link for link in links if link.startswith("/") or ":" in link]
    assert not re.search(r"""fetch\(["'`]/""", guarded.ask("/page.js").text)


def test_the_problem_of_a_login_is_escaped(pki: Pki) -> None:
    problem = CallFailure(FailureKind.FORBIDDEN, "<img src=x> may not")
    with serving(Tokens({"eve": problem}), tls=pki.files, context=trust(pki)) as site:
        text = site.log_in("eve").text
        assert "<img" not in text
        assert "&lt;img src=x&gt; may not" in text


def test_an_unchanged_document_is_sent_once(local: Site) -> None:
    first = local.ask("/document.json", Accept_Encoding="gzip")
    assert first.headers["content-encoding"] == "gzip"
    again = local.ask("/document.json", If_None_Match=f"W/{first.headers['etag']}")
    assert (again.status, again.body) == (304, b"")


def test_it_shows_the_gangs_the_held_plan_and_the_history(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    HistoryWriter(file).record(TREE, [], 100)
    held = HeldPlan(hash="0123456789abcdef", since="2026-11-01T00:00:00Z", moved_nodes=2)
    with serving(sources=sources_of(file)) as site:
        site.show(outcome_of(TREE, held=held))
        site.port.document.set_pods([BoundPod("ml/a", "node-1", None, {})])
        document = site.ask("/document.json").document
    assert document["jobs"]["gangs"][0]["name"] == "ml/a"
    assert document["changes"]["held"]["command"] == f"{APPROVE} 0123456789abcdef"
    assert [step["generation"] for step in document["changes"]["steps"]] == [1]


def test_a_damaged_history_leaves_the_rest_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    file.write_bytes(b"no database" * 1000)
    with serving(sources=sources_of(file)) as site:
        site.show(outcome_of(TREE))
        changes = site.ask("/document.json").document["changes"]
    assert changes["isKnown"] is False
