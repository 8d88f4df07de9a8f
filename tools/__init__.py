"""What keeps the book: the commands of its maintainers and of instructors.

``python -m tools`` names them. Nothing in the library imports a tool.
"""
