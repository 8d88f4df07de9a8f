"""Known mistakes and unusable answers that tests/test_exercises.py leaves."""

import pytest
from test_exercises import (
    KINDS,
    TASKS,
    each_known,
    is_first_of_three,
    require_that_it_is_named,
    require_that_it_is_refused,
)


@each_known(is_right=False, is_tried=lambda place: not is_first_of_three(place))
def test_a_known_mistake_is_named(task, known):
    require_that_it_is_named(task, known)


@pytest.mark.parametrize("place", range(len(TASKS)), ids=lambda i: TASKS[i].number)
def test_what_no_check_can_use_is_named_and_never_passes(place):
    for number, kind in enumerate(KINDS):
        if number != place % len(KINDS):
            require_that_it_is_refused(TASKS[place], kind)
