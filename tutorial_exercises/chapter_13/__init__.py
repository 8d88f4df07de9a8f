"""Exercises of chapter 13: reading attention honestly."""
