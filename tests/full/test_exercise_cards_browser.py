"""Cards in a real browser: nobody is shut out, in light and dark, on a phone too."""

import pytest
from exercise_chapters import Chapter, define
from made_up import exercise, judge

from tutorial_exercises import check, hint, progress, solution

assert Chapter(99).exercises

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Cards</title>
<style>:root {{ color-scheme: {scheme}; background: Canvas }}</style>
<main><h1>Cards</h1>{cards}</main>"""


def talkative(x):
    print("<script>alert(1)</script>" * 9)
    raise ValueError("<img src=x onerror=alert(1)>" + "a-very-long-word" * 20)


def cards():
    """Return a card of every kind, with every hint and solution unfolded."""
    with exercise(lambda x: x, hints=["Try."]):
        stub = define("def never():\n    ...", "never")
        shown = [check(stub, "98.1"), hint("98.1")]
    shown += [
        judge(talkative, 1, hints=["Look at `print`."]),
        judge(lambda x: x, 1),
        check(lambda scores, mask=None: scores, "example_softmax"),
        check(1, "no such exercise"),
        solution("example_attention"),
        progress(99),
    ]
    html = "".join(card._repr_html_() for card in shown)
    return html.replace("<details>", "<details open>")


@pytest.fixture
def page(page_at, tmp_path, request):
    scheme, width = request.param
    place = tmp_path / "cards.html"
    place.write_text(PAGE.format(scheme=scheme, cards=cards()), encoding="utf-8")
    return page_at(place, color_scheme=scheme, viewport={"width": width, "height": 800})


EVERYWHERE = [(scheme, width) for scheme in ("light", "dark") for width in (1000, 400)]


@pytest.mark.parametrize("page", EVERYWHERE, indirect=True, ids=str)
def test_a_card_passes_axe_and_fits_the_page(page, axe_violations):
    assert axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("page", EVERYWHERE[:1], indirect=True, ids=str)
def test_what_a_student_prints_or_raises_is_text(page):
    assert page.locator("img, .exercise-card script").count() == 0
    assert page.get_by_text("<img src=x onerror=alert(1)>").count() == 1
