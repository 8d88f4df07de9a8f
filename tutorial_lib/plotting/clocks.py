"""Clock faces: a query and a key whose pairs of numbers are hands that turn.

This module knows neither what is turned nor how fast: it is given degrees.
"""

from tutorial_lib.plotting.panels import WIDTH
from tutorial_lib.plotting.pictures import Picture

LEFT = 0.85  # inches for the names of rows
RADIUS = 0.4  # inches of a clock
FIRST, STEP = 0.85, 1.3  # inches down to the first row of clocks, and to the next


def show_turning(places, degrees):
    """Draw a query and a key as the hands of clocks that turn with their positions.

    ``places`` lists pairs (position of the query, position of the key), a row of clocks
    each; ``degrees`` lists how far each hand turns in one position, a column each. Both
    stand at twelve at position 0, and the angle between them is filled: Su et al.
    (2021), figure 1. Raises ValueError for a query that does not stand behind its key.
    """
    if any(query <= key for query, key in places):
        raise ValueError("each query must stand at a later position than its key")
    picture = Picture(WIDTH, FIRST + STEP * len(places) - 0.62)
    wide = (WIDTH - LEFT) / len(degrees)
    for column, turn in enumerate(degrees):
        x = LEFT + wide * (column + 0.5)
        picture.text(x, 0.15, f"{turn}° a step", color="quiet")
        for row, (query, key) in enumerate(places):
            y, apart = FIRST + STEP * row, (query - key) * turn % 360
            picture.sector(x, y, RADIUS, key * turn % 360, apart, "value")
            hands = {"q": (query * turn % 360, "query"), "k": (key * turn % 360, "key")}
            picture.clock(x, y, RADIUS, hands)
    for row, (query, key) in enumerate(places):
        y = FIRST + STEP * row
        picture.text(0, y - 0.11, f"query {query}", color="query", align="left")
        picture.text(0, y + 0.11, f"key {key}", color="key", align="left")
    return picture.figure
