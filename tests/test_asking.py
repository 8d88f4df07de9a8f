"""A text box in a notebook, and what stands in its place on a page."""

import pytest

from tutorial_lib.figures.text_box import VIEW, ask

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


def below(question):
    """Return what stands below the box."""
    [output] = question.shown.outputs
    return output["data"]


def test_the_example_is_answered_before_anybody_asks():
    question = ask(shout, "hello", label="word")
    assert question.text.value == "hello"
    assert question.text.description == "word"
    assert below(question) == {"text/html": "<b>HELLO</b>", "text/plain": "HELLO"}


def test_a_new_text_is_answered_at_enter_or_at_the_button():
    question = ask(shout, "hello")
    question.text.value = "bye"  # what Enter does
    assert below(question)["text/plain"] == "BYE"
    question.text.unobserve_all()  # as if nobody had pressed Enter
    question.text.value = "again"
    question.button.click()
    assert below(question)["text/plain"] == "AGAIN"


def test_one_question_is_answered_once():
    asked = []
    question = ask(lambda text: asked.append(text) or text, "hello")
    question.button.click()
    question.text.value = "bye"
    question.button.click()
    assert asked == ["hello", "bye"]


def test_a_refusal_is_shown_as_a_sentence_and_can_be_mended():
    question = ask(shout, "hello")
    question.text.value = "  "
    assert below(question) == {"text/plain": "Write something first."}
    question.text.value = "yes"
    assert below(question)["text/plain"] == "YES"


def test_any_other_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        ask(lambda text: 1 / 0, "hello")


def test_a_page_gets_the_answer_and_a_kernel_the_box():
    question = ask(shout, "hello")
    bundle = question._repr_mimebundle_()
    assert bundle.pop(VIEW)["model_id"] == question.box.model_id
    assert bundle == {"text/html": "<b>HELLO</b>", "text/plain": "HELLO"}
