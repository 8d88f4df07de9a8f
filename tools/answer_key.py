"""The answer key: one document with the solutions of all exercises.

This module does not know what an exercise asks for: that stands in its chapter.
"""

from tools.notebooks import source_of

HEAD = """\
# Answers to the exercises

A solution stands in the place of the blanks in its stub. Other answers may be right:
what counts is the check in the notebook.
"""


def answer_key(sheets):
    """Return the solutions in the order of the chapters, as Markdown.

    Raises ValueError for an exercise without a solution.
    """
    parts = [HEAD]
    for sheet in sheets:
        title = source_of(sheet.notebook["cells"][0]).partition("\n")[0].strip("# ")
        parts.append(f"## {title}\n")
        for task in sheet.tasks:
            code = f"```python\n{task.solved().strip()}\n```\n"
            parts.append(f"### {task.exercise.heading}\n\n{code}")
    return "\n".join(parts)
