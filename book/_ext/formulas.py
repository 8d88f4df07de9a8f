"""A Sphinx extension that sets formulas when the book is built, not in the browser.

TeX becomes MathML Core, which browsers draw themselves and screen readers know: a page
needs no script for it. The font is STIX Two Math, cut down to the signs that the pages
use. What ``math_core`` cannot set stops the build.
"""

import html
import importlib.util
import re
import unicodedata
from pathlib import Path

from docutils.nodes import SkipNode
from fontTools.ttLib import TTFont
from math_core import LatexError, LatexToMathML
from offline_assets import cut_font
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

BESIDE = re.compile(
    r"[(“]*<span class=\"math notranslate\">(?:(?!</span>).)*</span>[^\s\w<(“][^\s<]*",
    re.DOTALL,
)
FORMULA = re.compile(r"<math\b.*?</math>", re.DOTALL)
ZIAMATH = Path(importlib.util.find_spec("ziamath").origin).parent
FONT = ZIAMATH / "fonts" / "STIXTwoMath-Regular.ttf"
# Signs that a browser draws by itself: of a root, and letters that stand alone.
ROOT = 0x221A
ITALICS = [0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)]
CONVERTER = LatexToMathML(fancy_error=False)


def setup(app):
    """Offer ``mathml`` as a value of ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (set_in_line, None), (set_alone, None))
    app.connect("html-page-context", hold_together)
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def set_in_line(translator, node):
    """Set a formula in a line of text."""
    formula = mathml(node.astext(), display=False)
    translator.body.append(f'<span class="math notranslate">{formula}</span>')
    raise SkipNode


def set_alone(translator, node):
    """Set a formula that stands alone, beside its number, if it has one."""
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    formula = mathml(node.astext(), display=True)
    translator.body.append(f'<div class="formula">{formula}</div></div>\n')
    raise SkipNode


def mathml(tex, *, display):
    """Return a formula as MathML; ExtensionError names one that cannot be set."""
    tex = tex.strip()
    try:
        formula = CONVERTER.convert_with_local_state(tex, displaystyle=display)
    except LatexError as error:
        raise ExtensionError(f"The formula {tex} cannot be set: {error}") from error
    return formula.replace("<math", f'<math alttext="{html.escape(tex)}"', 1)


def hold_together(app, pagename, templatename, context, doctree):
    """Let no line end between a formula and the comma, bracket or hyphen beside it."""
    together = r'<span class="unbroken">\g<0></span>'
    context["body"] = BESIDE.sub(together, context.get("body", ""))


def write_font(app, error):
    """Write the font of all formulas beside the style sheet, which names it."""
    if error is None and app.builder.format == "html":
        pages = Path(app.outdir).rglob("*.html")
        font = font_of(page.read_text("utf-8") for page in pages)
        Path(app.outdir, "_static", "formulas.woff").write_bytes(font)


def font_of(pages):
    """Return the font in WOFF, with the signs alone that the formulas of pages use."""
    formulas = "".join(formula for page in pages for formula in FORMULA.findall(page))
    signs = {ROOT, *map(ord, html.unescape(formulas))}
    plain = {sign: ord(unicodedata.normalize("NFKC", chr(sign))) for sign in ITALICS}
    font = TTFont(FONT)
    narrow_roots(font)
    return cut_font(font, signs | {sign for sign in ITALICS if plain[sign] in signs})


def narrow_roots(font):
    """Make tall root signs as wide as the lowest.

    Beside a root, Chromium leaves the room of the widest sign, whichever it draws.
    """
    lowest = font.getBestCmap()[ROOT]
    variants = font["MATH"].table.MathVariants
    place = variants.VertGlyphCoverage.glyphs.index(lowest)
    taller = variants.VertGlyphConstruction[place]
    names = {record.VariantGlyph for record in taller.MathGlyphVariantRecord}
    names.update({part.glyph for part in taller.GlyphAssembly.PartRecords})
    width = font["hmtx"][lowest][0]
    for name in names:
        scale = width / font["hmtx"][name][0]
        glyph = font["glyf"][name]
        glyph.coordinates.scale((scale, 1))
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = width, glyph.xMin
