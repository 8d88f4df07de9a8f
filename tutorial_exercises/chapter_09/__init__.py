"""Exercises of chapter 9: positions."""
