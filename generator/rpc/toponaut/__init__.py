"""Toponaut's proto packages: v1."""
