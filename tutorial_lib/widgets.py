"""Controls above a picture, for those who run a notebook; the picture alone for others.

This module does not know what is drawn.
"""

import html
import inspect
import io
import os
import sys
import warnings
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from threading import Timer

VIEW = "application/vnd.jupyter.widget-view+json"
BESIDE = "9em"  # the room for a label, left of its control
PATIENCE = 0.5  # seconds until a reader is told that something is being computed
OWN = "tutorial-controls"  # the class of what holds the controls
OLD = "tutorial-old"  # of a picture that the controls say no more
# JupyterLab would take a key for a command, as X to cut the cell; it keeps those with
# Ctrl. A screen reader is told names, and whether a button is pressed. The check mark
# of a pressed button does not wait for Python.
PAGE = f"""<style>
  .{OWN} .widget-toggle-button.mod-active::before {{ content: "✓"; }}
  .{OLD} {{ opacity: 0.35; }}
</style>
<script>
(() => {{
  const ours = (event) => event.target.closest?.(".{OWN}");
  const keep = (event) => {{
    const isCommand = event.ctrlKey || event.metaKey || event.altKey;
    if (ours(event)) {{
      event.target.toggleAttribute("data-lm-suppress-shortcuts", !isCommand);
    }}
  }};
  const tell = (event) => {{
    const all = (kind) => ours(event)?.querySelectorAll(kind) ?? [];
    for (const button of all(".widget-toggle-button")) {{
      button.ariaLabel = button.title;
      button.ariaPressed = button.classList.contains("mod-active");
    }}
    for (const handle of all("[role=slider]")) {{
      const slider = handle.closest(".widget-slider");
      handle.ariaLabel = slider.querySelector(".widget-label").textContent;
    }}
  }};
  addEventListener("keydown", keep, true);  // before JupyterLab
  addEventListener("focusin", tell);
  addEventListener("click", tell);
}})();
</script>"""


def explore(draw, labels=None, **controls):
    """Show what ``draw`` returns, below one control for each of its arguments.

    ``draw(**values)`` returns a picture, a table or anything that a notebook shows. The
    controls, by the names of its arguments:

    - ``(low, high)`` or ``(low, high, step)``: a slider, of whole numbers if all are;
    - a list of texts or numbers: a menu;
    - a text: a field, which answers on Enter;
    - True or False: a check box;
    - rows of True and False: a grid of cells to click.

    A control begins with the default of its argument, if there is one. ``labels`` maps
    arguments to what stands beside their controls. An error of ``draw`` becomes a
    sentence below the controls, and the last picture stays, faint. A warning becomes
    one, too, such as that a font lacks a character.

    Where nothing can answer the reader, in a built book or on GitHub, the first picture
    stands alone: the environment variable TUTORIAL_WIDGETS=off asks for that.

    Raises ValueError for a control that is none of these, or whose first value does not
    fit; what ``draw`` raises for its first values is not caught.
    """
    labels = {name: name.replace("_", " ") for name in controls} | (labels or {})
    values = {name: _first(draw, name, control) for name, control in controls.items()}
    printed, picture = _drawn(draw, values)
    if os.environ.get("TUTORIAL_WIDGETS") == "off" or not find_spec("ipywidgets"):
        _show(picture, printed=printed)
        print(f"In a running notebook you can change: {', '.join(labels.values())}.")
        return

    from ipywidgets import HTML, Output

    inputs = {
        name: _control(control, values[name], labels[name])
        for name, control in controls.items()
    }
    message, shown = HTML(), Output()
    _say(message, "")

    def redraw(change):
        shown.clear_output(wait=True)  # the old picture stays until the new one comes
        with shown, _reported(message, shown):
            _show(draw(**{name: control.value for name, control in inputs.items()}))

    for control in inputs.values():
        control.observe(redraw, names="value")
    box = _box([*inputs.values(), message, shown])
    view = {"model_id": box.model_id, "version_major": 2, "version_minor": 0}
    _show(picture, {VIEW: view})  # the picture is for who cannot show the view
    with shown:
        _show(picture, printed=printed)


def _drawn(draw, values):
    """Return what ``draw`` prints, which is to change with its picture, and that."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        picture = draw(**values)
    return printed.getvalue(), picture


def _box(parts):
    """Return a widget that holds others, and what the page does for them."""
    from IPython.display import display
    from ipywidgets import Output, VBox

    script = Output(layout={"display": "none"})
    with script:
        display({"text/html": PAGE, "text/plain": ""}, raw=True)
    box = VBox([*parts, script])
    box.add_class(OWN)
    return box


@contextmanager
def _reported(message, shown):
    """Say in a widget that something is computed, and in the end what went wrong.

    What is ``shown`` is then faint, for it is what was drawn before.
    """
    sentence, drawn = "", False
    busy = Timer(PATIENCE, _say, (message, "Computing …"))
    busy.start()
    with warnings.catch_warnings(record=True) as warned:
        try:
            yield
            drawn = True
        except KeyboardInterrupt:
            sentence = "Stopped. Move a control to draw again."
        except Exception as error:
            sentence = _sentence(error)
    if warned and not sentence:
        sentence = str(warned[0].message)
    busy.cancel()
    busy.join()
    (shown.remove_class if drawn else shown.add_class)(OLD)
    _say(message, sentence)


def _say(message, sentence):
    message.value = f'<span role="status">{html.escape(sentence)}</span>'


def _sentence(error):
    """Return the first line of an error, with its type unless it is a sentence."""
    first = str(error).strip().split("\n")[0][:200]
    if isinstance(error, ValueError) and " " in first:
        return first
    return f"{type(error).__name__}: {first}".rstrip(": ")


def _first(draw, name, control):
    """Return the value that a control begins with, and check that they fit."""
    value = inspect.signature(draw).parameters[name].default
    if value is inspect.Parameter.empty:
        value = control
        if isinstance(control, (list, tuple)) and not isinstance(control[0], list):
            value = control[0]
    _kind(control, value, name)
    return value


def _kind(control, value, name):
    """Name the widget for a control, or raise ValueError if there is none."""
    if isinstance(control, bool):
        return "Checkbox"
    if isinstance(control, str):
        return "Text"
    if isinstance(control, list) and control:
        if isinstance(control[0], list):
            return "grid"
        if value in control:
            return "Dropdown"
    is_range = isinstance(control, tuple) and len(control) in (2, 3)
    if is_range and control[0] <= value <= control[1]:
        whole = all(isinstance(number, int) for number in (value, *control))
        return "IntSlider" if whole else "FloatSlider"
    raise ValueError(
        f"{name}: a control is (low, high), a list, a text, True or False, or rows of "
        f"True and False, and begins with a value of its own, not {value!r}"
    )


def _control(control, value, label):
    """Return the widget for a control, whose ``value`` is what ``draw`` is given."""
    import ipywidgets

    kind = _kind(control, value, label)
    if kind == "grid":
        return _grid(value, label)
    options = {"value": value, "description": label}
    options["layout"] = ipywidgets.Layout(width="95%")
    options["style"] = {"description_width": BESIDE}
    if kind == "Dropdown":
        options["options"] = control
    elif kind != "Checkbox":
        options["continuous_update"] = False  # answer on release, and on Enter
    if kind.endswith("Slider"):
        low, high, *step = control
        usual = 1 if kind == "IntSlider" else (high - low) / 100
        options |= {"min": low, "max": high, "step": step[0] if step else usual}
    control = getattr(ipywidgets, kind)(**options)
    if control.has_trait("tooltip"):
        control.tooltip = label  # or "null" is shown
    return control


def _grid(rows, label):
    """Return a widget of buttons whose value is rows of True and False."""
    from ipywidgets import HBox, Label, Layout, VBox
    from traitlets import List

    class Grid(HBox):
        value = List()

    buttons = [
        [
            _cell(pressed, f"{label}: row {i}, column {j}")
            for j, pressed in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    name = Label(label, layout=Layout(width=BESIDE, justify_content="flex-end"))
    grid = Grid([name, VBox([*map(HBox, buttons)])])

    def read(change=None):
        grid.value = [[button.value for button in row] for row in buttons]

    read()
    for row in buttons:
        for button in row:
            button.observe(read, names="value")
    return grid


def _cell(pressed, name):
    """Return one button of a grid; the page marks it while it is pressed."""
    from ipywidgets import Layout, ToggleButton

    layout = Layout(width="2.4em", margin="1px", padding="0")
    return ToggleButton(value=bool(pressed), tooltip=name, layout=layout)


def _show(picture, more=None, printed=""):
    """Display a picture, with ``more`` forms of it in the same output."""
    from IPython import get_ipython
    from IPython.display import display

    print(printed, end="")
    data, metadata = get_ipython().display_formatter.format(picture)
    display(data | (more or {}), metadata=metadata, raw=True)
    if "matplotlib.pyplot" in sys.modules:  # which would show its figures once more
        pyplot = sys.modules["matplotlib.pyplot"]
        if isinstance(picture, pyplot.Figure):
            pyplot.close(picture)
