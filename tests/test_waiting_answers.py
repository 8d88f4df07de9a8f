"""Nothing on a page gives an answer away before its question has been answered.

Each question names in its cell's metadata, ``gives_away``, numbers or words that tell
its answer. Nobody who opens the page and touches nothing sees one of them: not in a
text, in code or in what it shows, and not in the words that stand for a picture. Once
answers are shown, each of them is there.
"""

from built_pages import CHAPTERS, ROOT, each, needs_pages

from tools.notebooks import read_notebook, tags_of

SHOW = "() => [...document.querySelectorAll('.show')].at(1)?.click()"  # all answers
# What can be seen, in live figures, too, and what stands for pictures.
SEEN = """() => {
  const seen = [];
  function look(node) {
    if (node.nodeType === Node.TEXT_NODE) seen.push(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE || !node.checkVisibility()) return;
    if (node.matches("script, style, template")) return;
    seen.push(node.getAttribute("alt") ?? "", node.getAttribute("aria-label") ?? "");
    [...(node.shadowRoot ?? node).childNodes].forEach(look);
    if (!node.matches("span, em, strong, code, a, math, math *")) seen.push(" ");
  }
  look(document.querySelector("article"));
  return seen.join("").replace(/\\s+/g, " ");
}"""


def questions(page_file):
    """Return the cells of the questions of a page."""
    notebook = read_notebook(ROOT / "notebooks" / f"{page_file.stem}.ipynb")
    return [cell for cell in notebook["cells"] if "predict" in tags_of(cell)]


@needs_pages
@each(CHAPTERS)
def test_nothing_tells_an_answer_before_it_is_asked_for(page_file, loaded):
    page, problems = loaded(page_file)
    before = page.evaluate(SEEN)
    page.evaluate(SHOW)
    after = page.evaluate(SEEN)
    faults = []
    for cell in questions(page_file):
        told = cell["metadata"].get("gives_away", [])
        if not told:
            faults.append(f"{cell['id']} does not name what gives it away")
        for phrase in told:
            if phrase in before:
                faults.append(f"{cell['id']} is given away: {phrase}")
            elif phrase not in after:
                faults.append(f"{cell['id']} is answered without: {phrase}")
    assert faults == [] and problems == []
