"""Exercises of chapter 16: windows, matching, running sums, and what is seen."""
