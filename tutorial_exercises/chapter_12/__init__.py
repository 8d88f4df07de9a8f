"""Exercises of chapter 12: writing, and what it takes."""
