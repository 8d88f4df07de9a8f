"""Exercises of chapter 15: asking, and judging where a model looks."""
