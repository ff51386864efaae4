"""Replay of a mix of jobs on a fabric, to compare ways to place them. Pure: time is the trace's."""
