"""Exercises of chapter 2: kernel regression and the choice of its width."""
