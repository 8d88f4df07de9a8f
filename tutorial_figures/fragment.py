"""The HTML of a live figure, made of its data and of the files beside this one.

Nothing is imported but the standard library, so that the book's build can use this
file, too, where there is no torch.
"""

import base64
import functools
import hashlib
import html
import json
import pathlib

HERE = pathlib.Path(__file__).parent


def fragment(name, data, *, text, png, colors, shared=()):
    """Return a live figure, self-contained, with a picture as its fallback.

    ``name`` is that of the JavaScript function that draws ``data``, and of its .js and
    .css; ``shared`` are the .js it needs besides base.js. ``text`` describes the
    picture, ``png``. ``colors`` are two dictionaries, of light pages and of dark ones.
    """
    written = as_json(data)
    key = hashlib.sha256((name + written).encode()).hexdigest()[:12]
    picture = base64.b64encode(png).decode()
    return (
        f'<div data-figure="{key}" data-lm-suppress-shortcuts="true">'
        f'<img alt="{html.escape(text)}" style="max-width:100%" '
        f'src="data:image/png;base64,{picture}"></div>'
        f"<script>(() => {{\n{scripts_of(name, shared)}"
        f'start("{key}", {written}, {as_json(css_of(name, colors))}, {name});\n}})();'
        "</script>"
    )


# What other pages import, in the form that anywidget expects. What was put into the
# page goes away with the function that it returns.
MODULE = """{scripts}const data = {data};
const css = {css};
let ready;
export default {{
  async render({{ el }}) {{
    ready ??= Promise.resolve({name}.prepare?.(data));
    await ready;
    const host = document.createElement("div");
    host.textContent = {text};
    el.append(host);
    startIn(host, data, css, {name});
    return () => host.remove();
  }},
}};
"""


def module(name, data, *, text, colors, shared=()):
    """Return a live figure as an ES module, which draws it where it is told to."""
    return MODULE.format(
        scripts=scripts_of(name, shared),
        data=as_json(data),
        css=as_json(css_of(name, colors)),
        name=name,
        text=as_json(text),
    )


def weights_script(name, weights):
    """Return the script that stands beside a page as ``name``.js, for `loadWeights`.

    It is a script and no data, because a page that is a file may read no other file.
    """
    return f'(window.attentionWeights ??= {{}})["{name}"] =\n  "{weights}";\n'


def scripts_of(name, shared):
    """Return the JavaScript of a figure, as pages carry it."""
    return "".join(map(shipped, ("base.js", *shared, f"{name}.js")))


def css_of(name, colors):
    """Return the style of a figure, with its colors."""
    return palette(*colors) + shipped("base.css") + shipped(f"{name}.css")


@functools.cache
def shipped(name):
    """Return the file ``name`` (.js or .css) as pages carry it: without comments.

    Those fill whole lines, and no literal of JavaScript goes over several.
    """
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    kept = (line for line in lines if line.strip()[:2] not in ("", "//", "/*"))
    return "".join(f"{line}\n" for line in kept)


def palette(light, dark):
    """Return the colors as variables of CSS, on light pages and on dark ones."""
    rules = ""
    for host, colors in ((":host", light), (":host([data-dark])", dark)):
        variables = "".join(f"  --{name}: {color};\n" for name, color in colors.items())
        rules += f"{host} {{\n{variables}}}\n"
    return rules


def as_json(value):
    """Return ``value`` as JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
