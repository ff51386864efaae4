"""Toponaut's proto packages."""
