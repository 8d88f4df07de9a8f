"""Exercises of chapter 6: learning to align."""
