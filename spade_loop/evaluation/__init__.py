"""Suites of questions and tasks that a model is measured by, and comparisons of what was measured."""
