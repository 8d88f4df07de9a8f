"""Exercises of chapter 7: self-attention, on sets and on graphs."""
