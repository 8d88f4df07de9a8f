"""Exercises of chapter 14: the Vision Transformer."""
