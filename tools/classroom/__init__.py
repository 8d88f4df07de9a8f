"""Exercises for a class: copies without solutions, masters for graders, and reports.

`python -m tools exercises` calls what is here. No chapter knows of it.
"""
