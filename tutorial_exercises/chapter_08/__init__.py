"""Exercises of chapter 8: many looks at once."""
