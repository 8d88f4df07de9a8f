"""Figures and cards where Colab shows them: each output in a frame of its own.

The frame has another origin and, in the dark, `theme=dark` on its root element. What a
widget shows is put into a hidden box first.
"""

import html
import json

import pytest
from exercise_chapters import define
from made_up import exercise, judge

from tutorial_exercises import check
from tutorial_figures import show_softmax

FRAME = """<!doctype html><html lang="en" {theme}><meta charset="utf-8">
<title>Output</title><style>
html {{ color: #212121 }}
html[theme=dark] {{ color: #d5d5d5; background: #383838 }}
body {{ margin: 0; font: 14px/1.4 sans-serif }}
</style><main><h1>Output</h1><div id="output" hidden></div></main><script>
const range = document.createRange();
document.getElementById("output").append(range.createContextualFragment({output}));
setTimeout(() => document.getElementById("output").hidden = false, 200);
</script></html>"""
everywhere = pytest.mark.parametrize("theme", ["", "theme=dark"], ids=["light", "dark"])


def framed(output, theme):
    """Return the document of an output's frame."""
    return FRAME.format(theme=theme, output=json.dumps(output).replace("<", "\\u003c"))


@pytest.fixture
def shown(page_at, tmp_path):
    """Return a function that shows an output in Colab's page, and returns its frame."""

    def show(output, theme):
        document = html.escape(framed(output, theme))
        frame = (
            f'<iframe sandbox="allow-scripts" width=600 height=700 srcdoc="{document}">'
        )
        (tmp_path / "colab.html").write_text(f"<!doctype html>{frame}", "utf-8")
        return page_at(tmp_path / "colab.html").frame_locator("iframe")

    return show


@everywhere
def test_a_figure_runs_in_its_frame_and_follows_the_theme(theme, shown):
    frame = shown(show_softmax([2.0, 1.0, 0.0]).html, theme)
    frame.locator(".readout").wait_for()
    assert frame.locator("input[type=range], [role=slider]").first.is_visible()
    assert frame.locator("[data-dark]").count() == bool(theme)
    assert frame.locator("html").evaluate("root => root.scrollWidth") <= 600


@everywhere
def test_a_card_passes_axe_in_its_frame(theme, page_at, tmp_path, axe_violations):
    with exercise(lambda x: x, hints=["Try."]):
        cards = [check(define("def never(x):\n    ...", "never"), "98.1")]
    cards += [judge(lambda x: x, 1), judge(lambda x: 2, 1)]
    output = "".join(card._repr_html_() for card in cards)
    (tmp_path / "frame.html").write_text(framed(output, theme), encoding="utf-8")
    page = page_at(tmp_path / "frame.html", viewport={"width": 600, "height": 800})
    page.locator(".exercise-card.fail").wait_for()
    assert page.locator(".exercise-card").count() == 3
    assert axe_violations(page) == []
