"""Exercises of chapter 5: translating with one vector."""
