"""A Sphinx extension for the book's own search, in place of that of Sphinx.

It writes ``_static/search_index.js``: of every section its heading, its sentences as
they are read, the names in its code, and the terms of ``book/terms.csv`` that it
explains. _static/search.js searches it, with MiniSearch, on the page of the search
alone. Code, headings and lists of contents are in no sentence. Questions to the reader,
and the answers that wait behind them, are found but not shown.
"""

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path

from docutils import nodes
from index_of_terms import read_terms
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.search.en import js_porter_stemmer

# Pages to look things up, which are named after those that explain.
REFERENCE = (
    "book/bibliography",
    "book/elsewhere",
    "book/instructors",
    "book/library",
    "book/notation",
    "book/results",
    "book/teaching_plan",
)
# Scripts of Sphinx's own search, which copies them and puts one on every page.
SPHINX_SCRIPTS = ("searchtools.js", "language_data.js", "sphinx_highlight.js")
# What is no sentence of a page: code, what it shows, what is written for machines.
SILENT = (
    nodes.comment,
    nodes.doctest_block,
    nodes.footnote_reference,
    nodes.image,
    nodes.literal_block,
    nodes.math_block,
    nodes.raw,
    nodes.target,
    nodes.title,
    addnodes.toctree,
)
WHOLE = (nodes.paragraph, nodes.term, nodes.caption)
SHORT = 3  # words: a sentence of fewer is shown with the next
SENTENCE_END = re.compile(r"(?<=[.?!])[”\"’)]*\s+(?=[“\"(‘]?[A-Z0-9√])")
# A full stop behind these ends no sentence.
SHORTENED = re.compile(r"(?:\b(?:al|e\.g|i\.e|Fig|Eq|vs|etc|cf|No|[A-Z])|^\d+)\.$")
# Of code, what is called, and names of more than a small word.
NAME = re.compile(r"\b(?:[A-Za-z]\w*(?:_|(?<=\w)[A-Z])\w*|[A-Za-z]\w{2,}(?=\())")
DEFINED = re.compile(r"<dt>.*?<code>(\w+).*?</dt><dd>(.*?)</dd>", re.DOTALL)
MARKUP = re.compile(r"<[^>]+>")
FORMULA = "\u2063"  # invisible, on both sides of a formula
TEX_SIGNS = {
    "infty": "∞",
    "cdot": "·",
    "times": "×",
    "odot": "⊙",
    "sum": "Σ",
    "top": "⊤",
    "le": "≤",
    "ge": "≥",
    "leq": "≤",
    "geq": "≥",
    "neq": "≠",
    "approx": "≈",
    "in": "∈",
    "to": "→",
    "rightarrow": "→",
    "dots": "…",
    "ldots": "…",
    "lVert": "‖",
    "rVert": "‖",
    "pm": "±",
    "mid": "|",
    "partial": "∂",
    "nabla": "∇",
    "circ": "∘",
    "lambda": "λ",
    "varepsilon": "ε",
    "varphi": "φ",
    "varnothing": "∅",
    "boldsymbol": "",
    "displaystyle": "",
    "bar": "",
    "hat": "",
    "mathbf": "",
    "quad": " ",
}


def setup(app):
    """Connect the functions below to the build."""
    app.connect("builder-inited", leave_out_sphinx_search)
    app.connect("doctree-resolved", keep_sections, priority=900)
    app.connect("doctree-resolved", lead_to_sections)
    app.connect("html-collect-pages", search_page)
    app.connect("html-page-context", drop_sphinx_scripts)
    app.connect("build-finished", write_index, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def leave_out_sphinx_search(app):
    """Keep Sphinx from making an index of its own, and a page for it."""
    app.builder.search = False
    app.sections_of_pages = {}


def search_page(app):
    """Yield the page of the search, whose template is in book/_templates."""
    yield "search", {"title": "Search"}, "search.html"


def drop_sphinx_scripts(app, pagename, templatename, context, doctree):
    """Leave the script out that would mark letters on a page."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if not str(getattr(script, "filename", script)).endswith(SPHINX_SCRIPTS)
    ]


# --- The sections of a page ---------------------------------------------------------


def keep_sections(app, doctree, page):
    """Keep what the search needs of a page that is about to be written."""
    if app.builder.name == "html":
        hidden = "nosearch" in app.env.metadata.get(page, {})
        app.sections_of_pages[page] = [] if hidden else sections_of(doctree)


def sections_of(doctree):
    """List the sections of a page, each as a dict that the search reads."""
    sections = []
    for section in doctree.findall(nodes.section):
        parts = [child for child in section if not isinstance(child, nodes.section)]
        title = next((part for part in parts if isinstance(part, nodes.title)), None)
        about = {
            "id": section["ids"][0] if sections else "",  # the first is the page
            "title": plain_text(title) if title is not None else "",
            "sentences": [],
            "hidden": [],
            "names": [],
        }
        for part in parts:
            add_sentences(part, about)
        about["names"] = [name for name, _ in Counter(about["names"]).most_common()]
        sections.append(about)
    return sections


def add_sentences(node, about, kind="sentences"):
    """Add to a section what a node and those in it say, and the names in its code."""
    if {"question", "answer"} & {*node.get("classes", [])}:
        kind = "hidden"
    if isinstance(node, nodes.literal_block):
        about["names"] += NAME.findall(node.astext())
    elif isinstance(node, nodes.raw):
        add_definitions(node.astext(), about)
    elif isinstance(node, nodes.row):
        about[kind] += row_of(node)
    elif isinstance(node, nodes.citation):
        about[kind].append(plain_text(node))
    elif isinstance(node, WHOLE):
        if not is_navigation(node):
            about[kind] += split_sentences(plain_text(node))
    elif not isinstance(node, (*SILENT, nodes.thead)):
        for child in node.children:
            if isinstance(child, nodes.Element):
                add_sentences(child, about, kind)


def add_definitions(html, about):
    """Add what the page of the library says of each name."""
    for name, said in DEFINED.findall(html):
        about["names"].append(name)
        about["sentences"].append(f"{name}: {MARKUP.sub('', said)}")


def row_of(row):
    """Return the row of a table as a sentence: its cells, with points between."""
    cells = [plain_text(entry) for entry in row if isinstance(entry, nodes.entry)]
    cells = [cell for cell in cells if cell]
    return [" · ".join(cells)] if any(re.search("[a-z]{3}", c) for c in cells) else []


def is_navigation(node):
    """Tell whether a paragraph is a link and nothing else, as in a list of contents."""
    links = [child for child in node if isinstance(child, nodes.reference)]
    return bool(links) and plain_text(node) == " · ".join(map(plain_text, links))


def plain_text(node):
    """Return what a node says as it is read, formulas in one line of plain signs."""
    return " ".join("".join(pieces(node)).split())


def pieces(node):
    """Yield the texts in a node."""
    if isinstance(node, nodes.Text):
        yield node.astext()
    elif isinstance(node, nodes.math):
        yield f"{FORMULA}{plain_formula(node.astext())}{FORMULA}"
    elif isinstance(node, nodes.title) or not isinstance(node, SILENT):
        for child in node.children:
            yield from pieces(child)
        if isinstance(node, (nodes.paragraph, nodes.label)):
            yield " "


def split_sentences(text):
    """Return the sentences of a text."""
    sentences = []
    for piece in re.split(SENTENCE_END, text):
        before = sentences[-1] if sentences else ""
        if before and (SHORTENED.search(before) or len(before.split()) < SHORT):
            sentences[-1] += f" {piece}"
        else:
            sentences.append(piece)
    return [sentence for sentence in sentences if sentence]


def plain_formula(tex):
    r"""Return a formula in plain signs: ``\mathbf{q} / \sqrt{d_k}`` is ``q / √d_k``."""
    text = re.sub(r"\\begin\{\w+\}|\\end\{\w+\}|\\left|\\right|[&]", "", tex)
    text = text.replace(r"\{", "(").replace(r"\}", ")").replace("{,}", ",")
    inner = r"\s*\{([^{}]*)\}"
    for _ in range(4):  # as deep as braces stand in braces
        text = re.sub(rf"\\sqrt{inner}", in_root, text)
        text = re.sub(rf"\\[dt]?frac{inner}{inner}", r"\1/\2", text)
        text = re.sub(rf"\\(?:text|math\w+|operatorname|hat|bar){inner}", r"\1", text)
        text = re.sub(rf"([_^]){inner}", in_script, text)
    text = re.sub(r"\\([A-Za-z]+)", of_command, text)
    text = re.sub(r"\\[,;:! ]|\\\\|~", " ", text).replace("\\", "")
    return " ".join(text.replace("{", "").replace("}", "").split())


def in_root(found):
    """Return a root, in brackets where it holds more than one sign or name."""
    inside = found[1].strip()
    return f"√{inside}" if re.fullmatch(r"\w+", inside) else f"√({inside})"


def in_script(found):
    """Return an index or a power, in brackets where it is long."""
    inside = found[2].strip()
    is_short = re.fullmatch(r"-?[\w∞]+", inside) or found[1] == "_"
    return f"{found[1]}{inside}" if is_short else f"{found[1]}({inside})"


def of_command(found):
    r"""Return the sign for a command, as α for ``\alpha``, or its name, as in max."""
    name = found[1]
    if name in TEX_SIGNS:
        return TEX_SIGNS[name]
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {name.upper()}")
    except KeyError:
        return name


# --- The index ----------------------------------------------------------------------


def write_index(app, error):
    """Write the index of all pages, and remove the scripts of Sphinx's own search.

    Pages that were not written anew are as they were kept the last time.
    """
    if error is not None or app.builder.name != "html":
        return
    static = Path(app.outdir, "_static")
    for script in SPHINX_SCRIPTS:
        (static / script).unlink(missing_ok=True)
    kept = Path(app.doctreedir, "search_sections.json")
    pages = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    pages.update(app.sections_of_pages)
    pages = {
        page: pages[page] for page in sorted(app.env.found_docs) if pages.get(page)
    }
    kept.write_text(json.dumps(pages), "utf-8")
    terms = explained(read_terms(app.env), pages)
    index = []
    for page, sections in pages.items():
        told = [
            section | {"terms": terms.get((page, section["id"]), [])}
            for section in sections
            if section["id"] == "" or section["sentences"] or section["hidden"]
        ]  # a heading alone above other sections leads nowhere
        index.append(
            {
                "url": app.builder.get_target_uri(page),
                "title": sections[0]["title"],
                "reference": page in REFERENCE,
                "sections": told,
            }
        )
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    script = f"{js_porter_stemmer}\nconst searchPages = {text};\n"
    (static / "search_index.js").write_text(script, "utf-8")


def explained(terms, pages):
    """Map (page, section) to the terms that the section explains, in all spellings.

    Raises ExtensionError where the table names a section that the page has not.
    """
    terms_of = {}
    for term in terms:
        section = section_of(term, pages[term.page])
        terms_of.setdefault((term.page, section["id"]), []).append(term.spellings)
    return terms_of


def section_of(term, sections):
    """Return the section that explains a term.

    It is the one that the table names by the beginning of its heading, or else the one
    that has a spelling of the term in its heading, the page itself last, or else says
    it most often.
    """
    if term.section:
        for section in sections:
            if section["title"].startswith(term.section):
                return section
        raise ExtensionError(
            f"book/terms.csv, {term.spellings[0]}: no heading of {term.page} begins "
            f"with {term.section!r}"
        )
    patterns = [rf"\b{re.escape(plain_words(each))}s?\b" for each in term.spellings]
    said = re.compile("|".join(patterns))

    def mentions(section):
        """Return whether its heading has the term, and how often it is said."""
        is_headed = bool(said.search(plain_words(section["title"])))
        is_part = section["id"] != ""
        text = plain_words(" ".join(section["sentences"] + section["hidden"]))
        return is_headed, is_headed and is_part, len(said.findall(text))

    return max(sections, key=mentions)


def lead_to_sections(app, doctree, page):
    """Let the links of the index of terms lead to the sections that explain them."""
    sections = {}
    for line in doctree.findall(nodes.paragraph):
        if "term" not in line:
            continue
        term = line.attributes.pop("term")
        if term.page not in sections:
            sections[term.page] = sections_of(app.env.get_doctree(term.page))
        anchor = section_of(term, sections[term.page])["id"]
        link = next(line.findall(nodes.reference))
        link["refuri"] += f"#{anchor}" if anchor else ""


def plain_words(text):
    """Return a text in small letters, with spaces for what joins two words."""
    return re.sub(r"[-–_\s\u2063]+", " ", text).lower()
