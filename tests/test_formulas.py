"""Formulas are set when the book is built, and what cannot be set stops the build."""

import io
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
sys.path.append(str(Path(__file__).parents[1] / "book" / "_ext"))
import formulas
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

SCALED = r"\operatorname{softmax}(\mathbf{Q} \mathbf{K}^\top / \sqrt{d_k})"


def test_a_formula_is_mathml_and_keeps_what_was_typed():
    line = formulas.mathml(r" \sqrt{d_k} < 1 ", display=False)
    assert line.startswith(r'<math alttext="\sqrt{d_k} &lt; 1">')
    assert "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>" in line
    assert 'display="block"' in formulas.mathml("x", display=True)


def test_a_formula_that_cannot_be_set_is_named():
    with pytest.raises(ExtensionError, match=r"The formula \\sofmax x cannot be set"):
        formulas.mathml(r"\sofmax x", display=False)


def test_no_line_ends_between_a_formula_and_its_comma_bracket_or_hyphen():
    def held(text):
        context = {"body": f"<p>{text}</p>"}
        formulas.hold_together(None, "page", "", context, None)
        return context["body"]

    formula = '<span class="math notranslate"><math><mi>n</mi></math></span>'
    for whole in (f"{formula},", f"({formula})", f"{formula}-grams,", f"“{formula}”"):
        together = f'<p>a <span class="unbroken">{whole}</span> b</p>'
        assert held(f"a {whole} b") == together
    for apart in (f"a {formula} b", f"{formula}<br>", f"a, {formula}"):
        assert held(apart) == f"<p>{apart}</p>"
    assert held(f"{formula} {formula}.").count("unbroken") == 1


def test_the_font_has_each_sign_of_a_formula_those_that_a_browser_draws_and_no_other():
    page = f"<p>ß {formulas.mathml(SCALED, display=True)} ж</p>"
    signs = TTFont(io.BytesIO(formulas.font_of([page]))).getBestCmap()
    assert {*map(ord, "softmax()𝐐𝐊⊤")} <= {*signs}
    assert {ord("√"), ord("𝑑"), ord("𝑘")} <= {*signs}
    assert not {ord("ß"), ord("ж"), ord("𝑧")} & {*signs}


def test_root_signs_of_all_heights_are_as_wide_as_the_lowest():
    font = TTFont(io.BytesIO(formulas.font_of([formulas.mathml(SCALED, display=True)])))
    lowest, table = font.getBestCmap()[ord("√")], font["MATH"].table.MathVariants
    [taller] = [
        variants
        for name, variants in zip(
            table.VertGlyphCoverage.glyphs, table.VertGlyphConstruction, strict=True
        )
        if name == lowest
    ]
    names = {record.VariantGlyph for record in taller.MathGlyphVariantRecord}
    assert len(names) > 2
    names = names | {part.glyph for part in taller.GlyphAssembly.PartRecords}
    width, _ = font["hmtx"][lowest]
    for name in names:
        assert font["hmtx"][name] == (width, font["glyf"][name].xMin)
        assert font["glyf"][name].xMax < 1.1 * width  # the drawing is as narrow
