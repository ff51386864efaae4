"""The page in a real Chromium: as a file, and served.

- browser: Chromium, driven by its DevTools protocol
- scene: a fabric with faults, gangs, a held plan and a history, and its page
- screenshots: `make screenshots` draws each view of the scene for the docs
- axe: axe-core, which finds what people with disabilities cannot use; see its SOURCE.md
"""
