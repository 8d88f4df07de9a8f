"""What a notebook does where a pretrained model is missing: it goes on without it.

A cell that cannot have its model says in a sentence what is needed, and shows what it
showed in the book, if the notebook's file can be read. Names that it would have given
to something are given to a `StandIn`, so that cells that use them do the same, and all
others run as ever.
"""

import ast
import html
import json
import os
import re
import sys
from pathlib import Path

from tutorial_lib.installed import MissingModelError
from tutorial_lib.notebook.widgets import VIEW

FOLDERS = (".", "../notebooks")  # the reader may work in a copy beside the book's own
INSTEAD = "This is what the book's run showed:"
USES = [
    *["abs", "add", "and", "array", "bool", "call", "contains", "delitem", "enter"],
    *["eq", "exit", "float", "floordiv", "ge", "getitem", "gt", "index", "int"],
    *["invert", "iter", "le", "len", "lt", "matmul", "mod", "mul", "ne", "neg", "next"],
    *["or", "pos", "pow", "radd", "rand", "rfloordiv", "rmatmul", "rmod", "rmul"],
    *["ror", "rpow", "rsub", "rtruediv", "rxor", "setitem", "sub", "truediv", "xor"],
]


class StandIn:
    """Stands for what a missing model would have given: any use of it says why."""

    def __init__(self, sentence):
        self.__dict__["_sentence"] = sentence

    def __repr__(self):
        return self._sentence

    def __getattr__(self, name):
        raise MissingModelError(self._sentence)

    def __setattr__(self, name, value):
        raise MissingModelError(self._sentence)


def _refuse(stand_in, *_, **__):
    raise MissingModelError(repr(stand_in))


def _refuse_in_torch(kind, function, types, args=(), kwargs=None):
    """Refuse to be an argument of a function of torch, or a part of one."""
    for argument in [*args, *(kwargs or {}).values()]:
        parts = argument if isinstance(argument, (list, tuple)) else [argument]
        for part in parts:
            if isinstance(part, StandIn):
                _refuse(part)


for _use in USES:
    setattr(StandIn, f"__{_use}__", _refuse)
StandIn.__hash__ = object.__hash__
StandIn.__torch_function__ = classmethod(_refuse_in_torch)


def go_on_without_models(shell):
    """Let a notebook go on after a cell whose model is missing.

    With the environment variable TUTORIAL_STRICT=1, as in the book's own tests, such a
    cell fails like any other.
    """
    if os.environ.get("TUTORIAL_STRICT") != "1":
        shell.set_custom_exc((MissingModelError, TypeError), _show)
        shell.events.register("post_run_cell", _end)


def _show(shell, kind, error, traceback, tb_offset=None):
    """Show IPython's traceback, but where `_end` says what there is to say."""
    source = shell.history_manager.input_hist_raw[-1]
    if _what_is_missing(shell, source, error) is None:
        lines = shell.InteractiveTB.structured_traceback(
            kind, error, traceback, tb_offset=tb_offset or 1
        )
        shell._showtraceback(kind, error, lines)


def _what_is_missing(shell, source, error):
    """Return the sentence on the model that a cell failed for, or None.

    Functions that check the type of what they are given, as torch.zeros does, refuse a
    stand-in by a TypeError of their own.
    """
    if isinstance(error, MissingModelError):
        return str(error)
    if isinstance(error, TypeError):
        for node in ast.walk(ast.parse(shell.transform_cell(source))):
            if isinstance(node, ast.Name):
                value = shell.user_ns.get(node.id)
                if isinstance(value, StandIn):
                    return repr(value)
    return None


def _end(result):
    """Say what is missing, show what the book showed, and let the next cell run."""
    from IPython import get_ipython

    error = result.error_in_exec
    shell = get_ipython()
    source = result.info.raw_cell
    sentence = _what_is_missing(shell, source, error)
    if sentence is None:
        return
    outputs = _outputs_in_the_book(shell, source, sentence)
    _publish(shell, _as_output(sentence, is_followed=bool(outputs)))
    for output in outputs:
        _publish(shell, output)
    line = _line_of(error, shell.user_ns)
    for name in _names_bound_from(line, shell.transform_cell(source)):
        shell.user_ns[name] = StandIn(sentence)
    result.error_in_exec = None  # so that "run all cells" goes on


def _as_output(sentence, is_followed):
    """Make an output of the sentence, whose install line can be copied."""
    code = r'<code style="white-space: nowrap">\g<0></code>'
    page = f"<p>{re.sub('pip install .*', code, html.escape(sentence))}</p>"
    if is_followed:
        sentence += f"\n{INSTEAD}"
        page += f"<p>{html.escape(INSTEAD)}</p>"
    data = {"text/plain": sentence, "text/html": page}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _publish(shell, output):
    """Show an output as a notebook's file holds it."""
    if output["output_type"] == "stream":
        getattr(sys, output["name"]).write(_joined(output["text"]))
    else:
        data = {kind: _joined(text) for kind, text in output["data"].items()}
        shell.display_pub.publish(data, metadata=output["metadata"])


def _joined(text):
    """Return a text that a notebook's file may hold as a list of lines."""
    return "".join(text) if isinstance(text, list) else text


# --- What the book's run showed -----------------------------------------------------


def _outputs_in_the_book(shell, source, sentence):
    """Return a cell's outputs in the notebook's file, or in the book's own, if any.

    Nobody tells a kernel which file is open: it is the one that holds most of the
    cells that were run.
    """
    ran = {cell.strip() for cell in shell.history_manager.input_hist_raw}
    for folder in FOLDERS:
        notebooks = [_cells_of(path) for path in sorted(Path(folder).glob("*.ipynb"))]
        if notebooks:
            cells = max(notebooks, key=lambda cells: len(ran & cells.keys()))
            outputs = cells.get(source.strip(), [])
            shown = [output for output in outputs if _is_shown(output, sentence)]
            if shown:
                return shown
    return []


def _cells_of(path):
    """Return the outputs of the code cells in a notebook's file, by their source."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        codes = [cell for cell in cells if cell["cell_type"] == "code"]
        return {_joined(cell["source"]).strip(): cell["outputs"] for cell in codes}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # something else, or half written


def _is_shown(output, sentence):
    """Tell if an output is more than an error, a control or our own sentence."""
    if output["output_type"] == "stream":
        return True
    data = output.get("data", {})
    said = _joined(data.get("text/plain", ""))
    return bool(data) and VIEW not in data and not said.startswith(sentence)


# --- What the cell would have named -------------------------------------------------


def _line_of(error, user_names):
    """Return the line of the cell in which the error arose."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_globals is user_names:
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return 1


def _names_bound_from(line, source):
    """Return the names that a cell binds from the statement at ``line`` on."""
    left = [node for node in ast.parse(source).body if node.end_lineno >= line]
    names = set()
    for node in left:
        names.update(_names_bound(node))
    return names


def _names_bound(node):
    """List the names that a statement binds outside of functions and classes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    own = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    names = []
    if not isinstance(node, own):  # which keep their names to themselves
        for child in ast.iter_child_nodes(node):
            names += _names_bound(child)
    return names
