"""Supervised warm start: what witnesses do and how environments are written, imitated by both roles first."""
