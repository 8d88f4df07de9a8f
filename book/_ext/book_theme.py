"""A Sphinx extension with what the configuration file cannot say about the pages.

Buttons lead to the repository once it has an address, and the foot of each page names
the version. Figures and equations carry the
number of their chapter, "Fig. 2.1"; headings carry none, because theirs is in their
text. Questions to the reader are marked, so that the style can set them off.
"""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.environment.collectors.toctree import TocTreeCollector

VERSION = re.compile(r'^version = "(.*)"$', re.MULTILINE)
EMPTY_HEAD = re.compile(r"<th\b([^>]*)>(\s*(?:<p>\s*</p>)?\s*)</th>")
# The theme calls its search button by less than stands on it, and leaves the sidebar,
# with the book's title, outside of all landmarks.
SEARCH_BUTTON = re.compile(
    r'(<button class="btn search-button-field [^>]*?) (?:aria-label|title)="Search"'
)
SIDEBAR = '<div id="pst-primary-sidebar"'
LANDMARK = f'{SIDEBAR} role="complementary" aria-label="The book"'
STORED_THEME = 'localStorage.getItem("theme") || "auto";'
CHOSEN_THEME = """{ light: "light", dark: "dark" }[localStorage.getItem("mode")]
      || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");"""
LONGEST = 160  # characters of a page's description


def setup(app):
    """Connect the functions below to the build."""
    app.connect("config-inited", set_theme_options)
    app.connect("doctree-read", mark_predictions)
    app.connect("env-get-updated", number_chapters_by_name, priority=600)
    app.connect("env-check-consistency", forget_heading_numbers)
    app.connect("html-page-context", mend_page)
    app.connect("build-finished", color_early)
    app.connect("build-finished", name_parts_of_frame)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def set_theme_options(app, config):
    """Show one search field, no advertisements, buttons that work, and the version."""
    options = config.html_theme_options
    options.update(navbar_persistent=[], primary_sidebar_end=[])
    options.update(pygments_dark_style="github-dark")
    if options.get("repository_url"):
        options.update(use_repository_button=True, use_issues_button=True)
    else:
        options.update(launch_buttons={})
    project = Path(app.srcdir, "pyproject.toml").read_text(encoding="utf-8")
    [version] = VERSION.findall(project)
    options["extra_footer"] += f"<p>Version {version}</p>\n"


def color_early(app, error):
    """Give pages their colors before they are drawn, and light ones without a script.

    The theme's own script would color a page once all of it is there, and anew.
    """
    if error is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            early = text.replace(' data-theme="auto">', ' data-theme="light">', 1)
            early = early.replace(STORED_THEME, CHOSEN_THEME, 1)
            if early != text:
                page.write_text(early, encoding="utf-8")


def name_parts_of_frame(app, error):
    """Give the search button and the sidebar names for those who hear a page."""
    if error is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            named = SEARCH_BUTTON.sub(r"\1", SEARCH_BUTTON.sub(r"\1", text))
            if LANDMARK not in named:
                named = named.replace(SIDEBAR, LANDMARK, 1)
            if named != text:
                page.write_text(named, encoding="utf-8")


def mark_predictions(app, doctree):
    """Give each paragraph that begins with a bold "Predict." a class of its own."""
    for paragraph in doctree.findall(nodes.paragraph):
        first = next((child for child in paragraph if child.astext()), None)
        if isinstance(first, nodes.strong) and first.astext() == "Predict.":
            paragraph["classes"].append("predict")


def number_chapters_by_name(app, env):
    """Count chapters as their files do, and figures anew on a page without a number.

    Sphinx has counted chapters by now, and numbered figures through.
    """
    for page, numbers in env.toc_secnumbers.items():
        chapter = page.removeprefix("notebooks/")[:2]
        if chapter.isdigit():
            for heading, number in numbers.items():
                numbers[heading] = (int(chapter), *number[1:])
    changed = TocTreeCollector().assign_figure_numbers(env)
    for kinds in env.toc_fignumbers.values():
        for figures in kinds.values():
            for place, (figure, number) in enumerate(figures.items(), start=1):
                if len(number) == 1:  # of a page without a number: begin with 1
                    figures[figure] = (place,)
    return changed


def forget_heading_numbers(app, env):
    """Drop the numbers of headings once those of figures were derived from them."""
    env.toc_secnumbers.clear()
    for contents in env.tocs.values():
        for reference in contents.findall(nodes.reference):
            reference.attributes.pop("secnumber", None)
    for title in env.titles.values():
        title.attributes.pop("secnumber", None)


def description(context, doctree):
    """Return what search engines and links to a page show of it: its first sentences.

    Long ones end after the last whole word within 160 characters.
    """
    paragraphs = doctree.findall(nodes.paragraph) if doctree is not None else ()
    description = next(
        (" ".join(p.astext().split()) for p in paragraphs if p.astext()), ""
    )
    if len(description) > LONGEST:
        description = description[:LONGEST].rsplit(" ", 1)[0] + " …"
    tags = {"og:type": "article", "og:title": context.get("title", "")}
    tags.update({"og:description": description, "description": description})
    pairs = ((name, html.escape(text)) for name, text in tags.items() if text)
    kinds = (
        ("property" if ":" in name else "name", name, text) for name, text in pairs
    )
    return "".join(
        f'<meta {kind}="{name}" content="{text}">\n' for kind, name, text in kinds
    )


def mend_page(app, pagename, templatename, context, doctree):
    """Mend what the theme and docutils write into a page.

    The first page gets a title besides the book's, which its heading repeats. The
    bibliography loses the roles of a list whose entries are not list items. A corner
    of a table in which nothing stands is no heading.
    """
    body = context.get("body", "")
    for role in (' role="list"', ' role="doc-biblioentry"'):
        body = body.replace(role, "")
    body = EMPTY_HEAD.sub(r"<td\1>\2</td>", body)
    context["body"] = body
    context["metatags"] = context.get("metatags", "") + description(context, doctree)
    if pagename == app.config.root_doc:
        context["title"] = "An interactive book"
