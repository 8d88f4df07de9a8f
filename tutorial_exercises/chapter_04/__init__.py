"""Exercises of chapter 4: masks and batches done right."""
