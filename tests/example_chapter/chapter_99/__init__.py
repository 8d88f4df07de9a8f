"""Exercises of a chapter that exists only here, one of every kind."""
