"""Desired and observed objects to an ordered plan, and its execution."""
