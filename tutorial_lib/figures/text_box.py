"""A text box in a notebook, with the answer to what was written below it.

The box needs a kernel. A page has none: what is stored there is the answer to an
example, as if there had never been a box.

This module does not know what is asked, nor what an answer is.
"""

VIEW = "application/vnd.jupyter.widget-view+json"


def text_box(answer, example, *, label="text", button="Answer"):
    """Return a text box for a notebook to show, with the answer to its text below.

    ``answer`` takes a string and returns whatever a notebook can show; a ValueError
    that it raises is shown as a sentence. The box begins with ``example``. Enter, or
    the button, answers what stands in it.
    """
    return TextBox(answer, example, label, button)


class TextBox:
    """A text, a button, and the answer: see ``text_box``. Needs ipywidgets."""

    def __init__(self, answer, example, label, button):
        from ipywidgets import Button, HBox, Layout, Output, Text, VBox

        self.answer, self.answered = answer, None
        wide = {
            "layout": Layout(width="75%"),
            "style": {"description_width": "initial"},
        }
        self.text = Text(example, description=label, continuous_update=False, **wide)
        self.button = Button(description=button)
        self.shown = Output()
        self.widget = VBox([HBox([self.text, self.button]), self.shown])
        self.text.observe(self.respond, names="value")  # Enter, or leaving the box
        self.button.on_click(self.respond)
        self.respond()

    def respond(self, _=None):
        """Answer what stands in the box, unless that is what was answered last."""
        if self.text.value == self.answered:
            return
        self.answered = self.text.value
        try:
            data, metadata = _as_shown(self.answer(self.answered))
        except ValueError as error:
            data, metadata = {"text/plain": str(error)}, {}
        output = {"output_type": "display_data", "data": data, "metadata": metadata}
        self.shown.outputs = (output,)

    def _repr_mimebundle_(self, include=None, exclude=None):
        """Show the box where there is a kernel, and else the answer by itself."""
        model = self.widget.model_id
        view = {"version_major": 2, "version_minor": 0, "model_id": model}
        return {**self.shown.outputs[0]["data"], VIEW: view}


def _as_shown(answer):
    """Return what a notebook stores of an answer: its forms, and notes on them."""
    from IPython.core.formatters import format_display_data

    return format_display_data(answer)
