"""A Sphinx extension for the library: an index of names, and a page for each file.

The directive ``library`` lists what a file defines, each name with the first sentence
of its docstring, and leads to the file's own page, where its code is. Files are read
and never imported, so that the book builds without torch.
"""

import ast
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PACKAGES = ("tutorial_lib", "tutorial_figures")


class Library(SphinxDirective):
    """List the public names of one file: ``{library} tutorial_lib/data/text``."""

    required_arguments = 1

    def run(self):
        """Return the list, or an error that names the missing file."""
        [name] = self.arguments
        path = Path(self.env.srcdir, f"{name}.py")
        if not (path.exists() and name.startswith(PACKAGES)):
            raise self.error(f"there is no {name}.py to list")
        self.env.note_dependency(str(path))
        root = "../" * self.env.docname.count("/") + "library"
        pages = self.env.metadata[self.env.docname].setdefault("library", set())
        items = []
        for file, node in definitions(path):
            pages.add(file)
            items.append(
                f'<dt><a href="{root}/{file}.html#{node.name}"><code>'
                f"{escape(signature(node))}</code></a></dt><dd>{prose(node)}</dd>"
            )
        html = f'<dl class="library">{"".join(items)}</dl>'
        return [nodes.raw("", html, format="html")]


def definitions(path):
    """Yield (file, node) of what a file defines, or a package hands on from others."""
    root = next(parent for parent in path.parents if parent.name in PACKAGES).parent
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name != "__init__.py":
        file = path.relative_to(root).with_suffix("").as_posix()
        yield from ((file, node) for node in public(tree))
        return
    for line in tree.body:
        if isinstance(line, ast.ImportFrom):
            folder = path.parent if line.level else root
            module = folder / line.module.replace(".", "/")
            file = module.relative_to(root).as_posix()
            source = module.with_suffix(".py").read_text(encoding="utf-8")
            names = {alias.name for alias in line.names}
            yield from (
                (file, node) for node in public(ast.parse(source)) if node.name in names
            )


def public(tree):
    """Return the functions and classes of a file that others may use."""
    kinds = ast.ClassDef, ast.FunctionDef
    return [
        node
        for node in tree.body
        if isinstance(node, kinds) and not node.name.startswith("_")
    ]


def signature(node):
    """Write a name with the arguments that it is called with."""
    if isinstance(node, ast.ClassDef):
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        if not made:
            return node.name
        arguments = ast.unparse(made[0].args).removeprefix("self").removeprefix(", ")
        return f"{node.name}({arguments})"
    return f"{node.name}({ast.unparse(node.args)})"


def prose(node):
    """Return the first sentence of a docstring as HTML, code between backquotes."""
    first = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    parts = escape(first).split("``")
    return "".join(
        f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)
    )


def make_pages(app):
    """Yield a page for each file that some page lists."""
    listed = {
        name: page
        for page, data in app.env.metadata.items()
        for name in data.get("library", ())
    }
    for name, page in sorted(listed.items()):
        source = Path(app.srcdir, f"{name}.py").read_text(encoding="utf-8")
        title = f"{name}.py"
        back = app.builder.get_relative_uri(f"library/{name}", page)
        name_of_page = title.replace("/", "/<wbr>")  # so that a phone can break it
        body = f"<h1>{name_of_page}</h1>"
        body += f'<p><a href="{back}">All files of the library</a></p>'
        body += code_of(app.builder.highlighter, source)
        yield f"library/{name}", {"title": title, "body": body}, "page.html"


def code_of(highlighter, source):
    """Return a file's code as HTML, with a place to link to at each public name."""
    lines = source.splitlines(keepends=True)
    start = 0
    html = []

    def add(stop, name=None):
        nonlocal start
        text = "".join(lines[start:stop]).strip("\n")
        start = stop
        if text:
            block = highlighter.highlight_block(text + "\n", "python")
            html.append(f'<div id="{name}">{block}</div>' if name else block)

    for node in public(ast.parse(source)):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        add(first - 1)
        add(node.end_lineno, node.name)
    add(len(lines))
    return "".join(html)


def setup(app):
    """Offer the directive, and make the pages that it leads to."""
    app.add_directive("library", Library)
    app.connect("html-collect-pages", make_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
