"""Exercises of chapter 1: soft look-up."""
