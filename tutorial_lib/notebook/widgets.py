"""Controls above a picture for those who run a notebook; a few pictures for others.

They are ipywidgets', which answer through `interactive_output`. In JupyterLab a key
that is pressed in a control would be a command, too, such as X, which cuts the cell;
and screen readers are told neither the name of a slider nor that a button is pressed.
A script in the page sees to these.
"""

import base64
import html
import inspect
import itertools
import os
import sys
import warnings
from importlib.util import find_spec
from numbers import Integral

from tutorial_lib.installed import MissingModelError
from tutorial_lib.randomness import undisturbed

VIEW = "application/vnd.jupyter.widget-view+json"
BESIDE = "9em"  # the room for a label, left of its control
MOST_SETTINGS = 9
PAGE = """<style>
  .tutorial-controls .widget-toggle-button.mod-active::before { content: "✓"; }
</style>
<script>
(() => {
  const controlsOf = (event) => event.target.closest?.(".tutorial-controls");
  const keep = (event) => {  // all keys but those with Ctrl
    const isCommand = event.ctrlKey || event.metaKey || event.altKey;
    if (controlsOf(event)) {
      event.target.toggleAttribute("data-lm-suppress-shortcuts", !isCommand);
    }
  };
  const describe = (event) => {
    const all = (kind) => controlsOf(event)?.querySelectorAll(kind) ?? [];
    for (const button of all(".widget-toggle-button")) {
      button.ariaLabel = button.title;
      button.ariaPressed = button.classList.contains("mod-active");
    }
    for (const handle of all("[role=slider]")) {
      const slider = handle.closest(".widget-slider");
      handle.ariaLabel = slider.querySelector(".widget-label").textContent;
    }
  };
  addEventListener("keydown", keep, true);  // before JupyterLab
  addEventListener("focusin", describe);
  addEventListener("click", describe);
})();
</script>"""


def explore(draw, labels=None, on_page=None, **controls):
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
    sentence below the controls, and the last picture stays. A warning becomes one, too,
    such as that a font lacks a character.

    Where nothing can answer the reader, in a built book or on GitHub, the first picture
    stands alone: the environment variable TUTORIAL_WIDGETS=off asks for that. Then
    ``on_page`` gives some arguments a few values each, as a list, or as a dictionary
    from what a menu calls them. Their combinations, at most nine, are drawn and stored
    with the picture, and on the page of the book menus choose among them.
    TUTORIAL_WIDGETS=first asks for the first picture without these.

    Raises ValueError for a control that is none of these, or whose first value does not
    fit, and for ``on_page`` with more than nine combinations, or without the first.
    """
    names = {name: name.replace("_", " ") for name in controls}
    names.update(labels or {})
    values = {name: _first(draw, name, control) for name, control in controls.items()}
    menus = _menus(on_page or {}, values)
    asked = os.environ.get("TUTORIAL_WIDGETS")
    if asked in ("off", "first") or not find_spec("ipywidgets"):
        metadata = {}
        if menus and asked != "first" and find_spec("IPython"):
            metadata["settings"] = _settings(draw, values, menus, names)
        _show(draw(**values), metadata)
        changed = ", ".join(names.values())
        print(f"In a running notebook you can freely change: {changed}.")
        return

    import ipywidgets
    from IPython.display import HTML, display

    inputs = {
        name: _widget(control, values[name], names[name])
        for name, control in controls.items()
    }
    status = ipywidgets.HTML(layout={"min_height": "2em"})

    def redraw(**values):
        _say(status, "Computing …")
        _say(status, _show_and_report(draw, values))

    shown = ipywidgets.interactive_output(redraw, inputs)
    page = ipywidgets.Output(layout={"display": "none"})
    page.append_display_data(HTML(PAGE))
    box = ipywidgets.VBox([*inputs.values(), status, shown, page])
    box.add_class("tutorial-controls")
    display(box)


def _menus(on_page, values):
    """Map arguments to what their menus on the page offer: names, and values for each.

    Raises ValueError for an argument without a control, too many combinations, or a
    menu without the value that the picture begins with.
    """
    menus = {}
    combinations = 1
    for name, offered in on_page.items():
        if not isinstance(offered, dict):
            offered = {f"{value}": value for value in offered}
        if name not in values or values[name] not in offered.values():
            raise ValueError(
                f"on_page: {name} needs a control and, among its values, "
                f"{values.get(name)!r}, with which the picture begins"
            )
        menus[name] = offered
        combinations *= len(offered)
    if combinations > MOST_SETTINGS:
        raise ValueError(
            f"on_page: at most {MOST_SETTINGS} combinations are drawn for the page, "
            f"not {combinations}"
        )
    return menus


def _settings(draw, values, menus, names):
    """Draw all settings of the menus: what a page needs to show each of them."""
    offered = [list(menu.values()) for menu in menus.values()]
    drawn = []
    for chosen in itertools.product(*offered):
        with undisturbed():
            drawn.append(_drawn(draw, values | dict(zip(menus, chosen, strict=True))))
    controls = []
    for name, menu in menus.items():
        first = list(menu.values()).index(values[name])
        controls.append({"label": names[name], "values": [*menu], "first": first})
    return {"controls": controls, "drawn": drawn}


def _drawn(draw, values):
    """Return what ``draw`` prints and shows, as a page shows it."""
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        _show(draw(**values))
    [output] = captured.outputs
    if "text/html" in output.data:
        return {"text": captured.stdout, "html": output.data["text/html"]}
    picture = output.data["image/png"]
    if isinstance(picture, bytes):
        picture = base64.b64encode(picture).decode()
    return {"text": captured.stdout, "png": picture.replace("\n", "")}


def _show_and_report(draw, values):
    """Show a picture; return the sentence of an error or a warning, or nothing."""
    with warnings.catch_warnings(record=True) as warned:
        try:
            _show(draw(**values))
        except KeyboardInterrupt:
            return "Stopped. Move a control to draw again."
        except Exception as error:
            return _sentence(error)
    return str(warned[0].message) if warned else ""


def _sentence(error):
    """Return the first line of an error, with its type unless it is a sentence."""
    first = str(error).strip().split("\n")[0][:200]
    if isinstance(error, (MissingModelError, ValueError)) and " " in first:
        return first
    return f"{type(error).__name__}: {first}".rstrip(": ")


def _say(status, sentence):
    status.value = f'<span role="status">{html.escape(sentence)}</span>'


def _show(picture, metadata=None):
    """Display a picture, and close it, or matplotlib would show it once more."""
    if find_spec("IPython"):
        from IPython.display import display

        display(picture, metadata=metadata)
    else:
        print(picture)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and isinstance(picture, pyplot.Figure):
        pyplot.close(picture)


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
        is_whole = all(isinstance(number, Integral) for number in (value, *control))
        return "IntSlider" if is_whole else "FloatSlider"
    raise ValueError(
        f"{name}: a control is (low, high), a list, a text, True or False, or rows of "
        f"True and False, and begins with a value of its own, not {value!r}"
    )


def _widget(control, value, label):
    """Return the widget for a control, whose ``value`` is what ``draw`` is given."""
    import ipywidgets

    kind = _kind(control, value, label)
    if kind == "grid":
        return _grid(value, label)
    options = {
        "value": value,
        "description": label,
        "layout": {"width": "95%"},
        "style": {"description_width": BESIDE},
    }
    if kind == "Dropdown":
        options["options"] = control
    elif kind != "Checkbox":
        options["continuous_update"] = False  # answer on release, and on Enter
    if kind in ("IntSlider", "FloatSlider"):
        low, high = control[:2]
        options["min"] = low
        options["max"] = high
        if len(control) == 3:
            options["step"] = control[2]
        elif kind == "FloatSlider":
            options["step"] = (high - low) / 100
    widget = getattr(ipywidgets, kind)(**options)
    if widget.has_trait("tooltip"):
        widget.tooltip = label  # or "null" is shown
    return widget


def _grid(rows, label):
    """Return a widget of buttons whose value is rows of True and False."""
    import ipywidgets
    from traitlets import List

    class Grid(ipywidgets.HBox):
        value = List()

    layout = {"width": "2.4em", "margin": "1px", "padding": "0"}
    buttons = []
    for i, row in enumerate(rows):
        buttons.append([])
        for j, is_pressed in enumerate(row):
            tooltip = f"{label}: row {i}, column {j}"
            button = ipywidgets.ToggleButton(
                value=bool(is_pressed), tooltip=tooltip, layout=layout
            )
            buttons[i].append(button)
    name = ipywidgets.Label(
        label, layout={"width": BESIDE, "justify_content": "flex-end"}
    )
    cells = ipywidgets.VBox([ipywidgets.HBox(row) for row in buttons])
    grid = Grid([name, cells])

    def read(change=None):
        grid.value = [list(map(_is_pressed, row)) for row in buttons]

    read()
    for row in buttons:
        for button in row:
            button.observe(read, names="value")
    return grid


def _is_pressed(button):
    return button.value
