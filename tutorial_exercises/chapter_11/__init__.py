"""Exercises of chapter 11: the Transformer."""
