"""Exercises of chapter 10: the Transformer block."""
