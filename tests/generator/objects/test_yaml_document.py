import json
import string

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.objects.yaml_document import (
    MAX_ALIASED,
    MAX_DEPTH,
    YamlDocument,
    leave_out_refused,
    parse_document,
    parse_documents,
)
from tests.effort import examples
from topology.model.errors import ConfigError, ParseError


def values(text: str | bytes) -> list[object]:
    """Return documents, and errors as `line: problem`."""
    raw = text.encode() if isinstance(text, str) else text
    return [
        found.value if isinstance(found, YamlDocument) else f"{found.line}: {found.problem}"
        for found in parse_documents(raw, source="f.yaml")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1\nb: [x, -2, 1.5, true, null, ~]\nc:\n", None, id="scalars of JSON"),
        pytest.param('{"a": [1, {"b": null}], "c": "\\u00e9"}', None, id="JSON"),
        pytest.param("{a: 1, b: [c]}", None, id="a flow mapping that is no JSON"),
        pytest.param("\r\na: x\r\nb: |\r\n  y\r\n", None, id="CRLF"),
        pytest.param("\ufeffa: 1", [{"a": 1}], id="a byte order mark"),
        pytest.param("--- {a: 1}\n---\n...\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="several"),
        pytest.param(
            "mac: 11:22:33:44:55:10\nat: 2026-11-21T12:00:00Z\nguid: 0002\nyes: no",
            [
                {
                    "mac": "11:22:33:44:55:10",
                    "at": "2026-11-21T12:00:00Z",
                    "guid": "0002",
                    "yes": "no",
                }
            ],
            id="unquoted MACs, times and zeros stay text",
        ),
        pytest.param("a: '1'\nb: !!str 2\n", [{"a": "1", "b": "2"}], id="quoted numbers are text"),
        pytest.param("", [], id="nothing"),
        pytest.param("# only a comment\n---\n", [], id="empty documents"),
        pytest.param("kind: List\nitems:\n- {a: 1}\n- {b: 2}\n", [{"a": 1}, {"b": 2}], id="a list"),
        pytest.param(
            '{"kind": "PodList", "apiVersion": "v1", "items": [{"a": 1}, 2, {"kind": "b"}]}',
            [
                {"apiVersion": "v1", "kind": "Pod", "a": 1},
                2,
                {"apiVersion": "v1", "kind": "b"},
            ],
            id="a typed list, as the API server sends it",
        ),
        pytest.param("a: &x [1, {b: c}]\nd: *x\ne: [*x, *x]\n", None, id="aliases"),
        pytest.param(
            "a: &x 1\nb: &x 2\nc: *x\n",
            [{"a": 1, "b": 2, "c": 2}],
            id="an anchor that is set again",
        ),
        pytest.param("&k a: &v text\n*v : *k\n", None, id="anchors of keys, and aliases as keys"),
        pytest.param(
            "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n"
            "one: {<<: *b, y: 9}\ntwo: {y: 9, <<: [*m, *b]}\nthree: {<<: {q: 1}}\n",
            None,
            id="merge keys, whose values never replace a key",
        ),
        pytest.param('"<<": {a: 1}\n', [{"<<": {"a": 1}}], id="a quoted merge key is a key"),
        pytest.param('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}], id="several objects in JSON"),
        pytest.param("kind: Shelf\nitems: [1]", None, id="items of what is no list"),
        pytest.param("{kind: [List], items: [1]}", None, id="a kind that is no text"),
    ],
)
def test_it_reads_documents(text: str, expected: list[object] | None) -> None:
    assert values(text) == ([yaml.safe_load(text)] if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1\n---\nb: *x\n---\nc: 3\n", [{"a": 1}, "3: alias *x has no anchor", {"c": 3}]),
        ("a: &x [*x]", ["1: alias *x stands inside its own value"]),
        ("a: &x {b: [{c: *x}]}", ["1: alias *x stands inside its own value"]),
        ("a: &x [1]\n*x : 2", ["2: keys must be text"]),
        ("a: &x [1]\nb: {<<: *x}", ["2: <<: expected a mapping, or a list of mappings"]),
        ("<<: {a: 1}\n<<: {b: 1}", ["2: key << given twice"]),
        ("a: &x !!set {b}\nc: *x", ["1: tag tag:yaml.org,2002:set is not accepted"]),
        ("!!python/object:os.system {}", ["1: tag tag:yaml.org,2002:python/object:os.system is"]),
        ("a: !!int ''", ["1: tag tag:yaml.org,2002:int is not accepted"]),
        ("a: 1\nb: 2\na: 3\n", ["3: key a given twice"]),
        ('{"a": 1,\n "b": {"c": 2,\n "c": 3}}', ["3: key c given twice"]),
        ('{"a": 1, "a": 2}\n', ["1: key a given twice"]),
        ("? [a]\n: b", ["1: keys must be text"]),
        ("? {a: b}\n: c", ["1: keys must be text"]),
        ("a: 1\n---\nb: [\n---\nc: 3", [{"a": 1}, "4: not YAML: did not find expected node"]),
        ('{"a": [1, 2', ["2: not YAML: did not find expected ',' or ']'"]),
        ("a: \x00", ["None: not YAML: "]),
        (b"a: \xff\xfe", ["None: not UTF-8 at byte 3"]),
        ("%YAML 9.1\n---\na", ["1: not YAML: found incompatible YAML document"]),
        ("[" * 100_000, [f"1: nested deeper than {MAX_DEPTH}"]),
        ("- " * 100_000, [f"1: nested deeper than {MAX_DEPTH}"]),
        ("{a: " * 100_000, [f"1: nested deeper than {MAX_DEPTH}"]),
        ("{" * 100_000, [f"1: nested deeper than {MAX_DEPTH}"]),
        ("\n".join(" " * depth + "a:" for depth in range(300)), ["65: nested deeper than 64"]),
        ('{"a":' * 100_000, ["None: nested too deeply"]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_it_gives_the_reason_of_a_refusal(text: str | bytes, expected: list[object]) -> None:
    found = values(text)
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected, strict=True):
        assert one == wanted or str(one).startswith(str(wanted))


@pytest.mark.parametrize(
    "text", ["a0: &a0 [x, x]\n{}", "a0: &a0 {{x: 1}}\n{}"], ids=["of lists", "of mappings"]
)
def test_it_refuses_aliases_that_stand_for_too_much(text: str) -> None:
    """A hundred bytes a level, ten times the values: the attack of a billion laughs."""
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (found,) = values(text.format("\n".join(rows)))
    assert str(found).endswith(f"the aliases of the file stand for more than {MAX_ALIASED} values")


def test_it_counts_the_aliases_of_all_documents_of_a_file() -> None:
    row = "a: &a [" + "x, " * 9_999 + "x]\nb: [" + "*a, " * 40 + "*a]\n"
    found = values("---\n".join([row] * 3))
    assert [isinstance(one, dict) for one in found] == [True, True, False]


def test_it_counts_a_long_text_as_several_values() -> None:
    (found,) = values(f"a: &a {'x' * 1_000_000}\nb: [{'*a, ' * 101} *a]\n")
    assert "stand for more than" in str(found)


def test_it_counts_the_depth_of_what_an_alias_stands_for() -> None:
    deep = "[" * 40 + "]" * 40
    (found,) = values(f"a: &a {deep}\nb: {'[' * 30} *a {']' * 30}\n")
    assert found == f"2: alias *a: nested deeper than {MAX_DEPTH}"
    assert isinstance(values(f"a: &a {deep}\nb: {'[' * 20} *a {']' * 20}\n")[0], dict)


def test_a_value_that_is_left_out_is_left_out_wherever_its_alias_stands() -> None:
    raw = b"""
a: &a {x: !!int 1, y: 2}
b: {c: *a}
d: {<<: *a, y: 3}
e: {<<: *a, x: 4}
f: &f !!set {g}
h: [1, *f]
"""
    (found,) = parse_documents(raw, source="f.yaml", is_lenient=True)
    assert isinstance(found, YamlDocument)
    usable, faults = leave_out_refused(found.value)
    assert usable == {
        "a": {"y": 2},
        "b": {"c": {"y": 2}},
        "d": {"y": 3},
        "e": {"x": 4, "y": 2},
        "h": [1],
    }
    assert [fault.path for fault in faults] == [
        ("a", "x"),
        ("b", "c", "x"),
        ("d", "x"),
        ("f",),
        ("h", 1),
    ]


def test_it_refuses_a_mapping_that_cannot_be_merged_even_if_it_is_lenient() -> None:
    raw = b"a: &a !!set {x}\nb: {<<: *a}\n"
    (found,) = parse_documents(raw, source="f.yaml", is_lenient=True)
    assert isinstance(found, ParseError)


def test_it_lists_the_documents_of_a_file_that_may_have_only_one() -> None:
    raw = b"kind: Job\nmetadata: {name: t}\n---\nplanes: []\nx: 1\n"
    found = "got 2: Job t at line 1, an object with the keys planes, x at line 3"
    with pytest.raises(ConfigError, match=f"f.yaml: expected one document, {found}"):
        parse_document(raw, source="f.yaml")
    with pytest.raises(ConfigError, match="expected one document, got none"):
        parse_document(b"", source="f.yaml")


def test_it_accepts_the_maximum_depth() -> None:
    assert values("[" * MAX_DEPTH + "]" * MAX_DEPTH) != []
    assert isinstance(values("[" * MAX_DEPTH + "]" * MAX_DEPTH)[0], list)


def test_it_returns_the_line_at_which_a_document_starts() -> None:
    found = list(parse_documents(b"a: 1\n---\nb: 2\n", source="f.yaml"))
    assert [one.line for one in found] == [1, 2]


SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(string.printable)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(string.ascii_letters), inner),
    max_leaves=6,
)


@settings(max_examples=examples(60), deadline=None)
@given(value=st.dictionaries(st.text(string.ascii_letters, min_size=1), TREES, min_size=1))
def test_it_reads_the_same_from_json_and_yaml(value: dict[str, object]) -> None:
    assert values(json.dumps(value)) == [value]
    assert values(json.dumps(value, indent=2).replace("{", " {", 1)) == [value]
    assert values("--- " + json.dumps(value)) == [value]


@settings(max_examples=examples(300), deadline=None)
@given(raw=st.binary() | st.text("[]{}:-&*!|>#%@\"'\n ,a1?~").map(str.encode))
def test_it_raises_nothing_on_any_bytes(raw: bytes) -> None:
    found = list(parse_documents(raw, source="f.yaml"))
    assert all(str(one).isprintable() for one in found if isinstance(one, ParseError))
