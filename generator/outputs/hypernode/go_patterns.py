"""Regular expressions as Go reads them: the patterns of regexMatch. Pure.

Python's `re` reads other syntax (look-ahead, back references) and can take exponential time on a
hostile pattern. This matcher takes O(text) steps after the first texts, as Go's does.

Source: https://github.com/google/re2/wiki/Syntax, and the parser of Go's regexp/syntax.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from generator.outputs.hypernode.go_syntax import (
    Assertion,
    CharacterSet,
    Choice,
    Concatenation,
    Expression,
    PatternError,
    Repeat,
    parse_pattern,
)

MAX_STATES: Final = 20_000
"""Go refuses larger programs too."""
_MAX_REMEMBERED: Final = 50_000
_MATCH: Final = 0


class _StateKind(IntEnum):
    MATCH = 0
    STEP = 1
    SPLIT = 2
    ASSERT = 3


class _State(NamedTuple):
    op: _StateKind
    out: tuple[int, ...] = ()
    set: CharacterSet | None = None
    assertion: Assertion | None = None


class GoPattern:
    """A compiled pattern. Remembers its steps, so that many texts cost a look-up per character."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern.

        Raises:
            PatternError: Go refuses it.
        """
        self._states: list[_State] = [_State(_StateKind.MATCH)]
        self._start = frozenset([self._add(parse_pattern(pattern), _MATCH)])
        self._steps: dict[tuple[frozenset[int], int, str], tuple[frozenset[int], bool]] = {}

    def search(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text, as Volcano applies it."""
        states: frozenset[int] = self._start
        for at in range(len(text) + 1):
            after, is_match = self._step(states, text, at)
            if is_match:
                return True
            states = after | self._start
        return False

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        states: frozenset[int] = self._start
        is_match = False
        for at in range(len(text) + 1):
            states, is_match = self._step(states, text, at)
        return is_match

    def _add(self, expression: Expression, after: int) -> int:
        """Add the states of an expression that continues at `after`; return its first state.

        Raises:
            PatternError: the program becomes too large.
        """
        match expression:
            case CharacterSet():
                return self._append(_State(_StateKind.STEP, (after,), set=expression))
            case Assertion():
                return self._append(_State(_StateKind.ASSERT, (after,), assertion=expression))
            case Concatenation(parts):
                for part in reversed(parts):
                    after = self._add(part, after)
                return after
            case Choice(parts):
                return self._append(
                    _State(_StateKind.SPLIT, tuple(self._add(part, after) for part in parts))
                )
            case Repeat(part, least, most):
                return self._add_repeat(part, least, most, after)

    def _add_repeat(self, part: Expression, least: int, most: int | None, after: int) -> int:
        if most is None:
            loop = self._append(_State(_StateKind.SPLIT))
            self._states[loop] = _State(_StateKind.SPLIT, (self._add(part, loop), after))
            after = loop
        else:
            end = after
            for _ in range(most - least):
                after = self._append(_State(_StateKind.SPLIT, (self._add(part, after), end)))
        for _ in range(least):
            after = self._add(part, after)
        return after

    def _append(self, state: _State) -> int:
        if len(self._states) >= MAX_STATES:
            raise PatternError("expression too large")
        self._states.append(state)
        return len(self._states) - 1

    def _step(self, states: frozenset[int], text: str, at: int) -> tuple[frozenset[int], bool]:
        """Return the states after the next character, and whether a match ends before it."""
        char = text[at] if at < len(text) else ""
        before = text[at - 1] if at else ""
        context = (not before) | (not char) << 1 | (_is_word(before) != _is_word(char)) << 2
        key = (states, context, char)
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= _MAX_REMEMBERED:
                self._steps.clear()
            found = self._compute_step(states, context, char)
            self._steps[key] = found
        return found

    def _compute_step(
        self, states: frozenset[int], context: int, char: str
    ) -> tuple[frozenset[int], bool]:
        pending, seen, after = list(states), set(states), set()
        while pending:
            state = self._states[pending.pop()]
            if state.op is _StateKind.STEP:
                if char and state.set is not None and state.set.has(char):
                    after.add(state.out[0])
                continue
            if state.assertion is not None and not state.assertion.holds(context):
                continue
            new = [out for out in state.out if out not in seen]
            seen.update(new)
            pending += new
        return frozenset(after), _MATCH in seen


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
