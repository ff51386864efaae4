"""Replays of a trace of jobs on a fabric, to compare placement strategies.

- trace: parses, scales or draws a trace of jobs
- run_names: names of strategies and of rules for waiting jobs
- strategies: the placement strategies to compare
- replay: runs a trace on a regular tree with a strategy, event by event, and its statistics

Imports `generator.jobs`, `generator.placement` and `topology`. Pure: the clock is the trace's.
"""
