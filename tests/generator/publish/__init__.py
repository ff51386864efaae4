"""Tests of the outputs: plans, limits, files and what is reported."""
