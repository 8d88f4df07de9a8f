"""Exercises of chapter 3: scoring functions and scale."""
