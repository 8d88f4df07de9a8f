"""In place of the package of this name, which jsonschema does without.

It compiles 39 grammars when it is imported, which takes each process that imports
nbformat, and so every worker, more than two seconds. The book has no such addresses.
"""

raise ImportError("left out of the tests: see tests/lean")
