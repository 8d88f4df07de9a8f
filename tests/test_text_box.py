"""A text box in a notebook, and what stands in its place on a page."""

import pytest

from tutorial_lib.figures.text_box import VIEW, text_box

pytest.importorskip("ipywidgets")


class Shown:
    """Something that a notebook shows in a way of its own."""

    def __init__(self, text):
        self.text = text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": f"<b>{self.text}</b>", "text/plain": self.text}


def shout(text):
    if not text.strip():
        raise ValueError("Write something first.")
    return Shown(text.upper())


def below(box):
    """Return what stands below the box."""
    [output] = box.shown.outputs
    return output["data"]


def test_the_example_is_answered_before_anybody_asks():
    box = text_box(shout, "hello", label="word")
    assert box.text.value == "hello"
    assert box.text.description == "word"
    assert below(box) == {"text/html": "<b>HELLO</b>", "text/plain": "HELLO"}


def test_a_new_text_is_answered_at_enter_or_at_the_button():
    box = text_box(shout, "hello")
    box.text.value = "bye"  # what Enter does
    assert below(box)["text/plain"] == "BYE"
    box.text.unobserve_all()  # as if nobody had pressed Enter
    box.text.value = "again"
    box.button.click()
    assert below(box)["text/plain"] == "AGAIN"


def test_one_question_is_answered_once():
    asked = []
    box = text_box(lambda text: asked.append(text) or text, "hello")
    box.button.click()
    box.text.value = "bye"
    box.button.click()
    assert asked == ["hello", "bye"]


def test_a_refusal_is_shown_as_a_sentence_and_can_be_mended():
    box = text_box(shout, "hello")
    box.text.value = "  "
    assert below(box) == {"text/plain": "Write something first."}
    box.text.value = "yes"
    assert below(box)["text/plain"] == "YES"


def test_any_other_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        text_box(lambda text: 1 / 0, "hello")


def test_a_page_gets_the_answer_and_a_kernel_the_box():
    box = text_box(shout, "hello")
    bundle = box._repr_mimebundle_()
    assert bundle.pop(VIEW)["model_id"] == box.widget.model_id
    assert bundle == {"text/html": "<b>HELLO</b>", "text/plain": "HELLO"}
