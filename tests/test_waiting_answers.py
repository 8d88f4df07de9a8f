"""Nothing on a page gives an answer away before its question has been answered.

Each question names in its cell's metadata, ``gives_away``, numbers or words that tell
its answer. Nobody who opens the page and touches nothing sees one of them: not in a
text, in code or in what it shows, and not in the words that stand for a picture. Once
answers are shown, each of them is there.
"""

from built_pages import CHAPTERS, ROOT, each, needs_pages

from tools.notebooks import read_notebook, tags_of

DONE = {"13_reading_attention", "x_attribution", "x_real_language_model"}
DONE |= {"x_pictures_meet_words"}
NOT_YET = {path.stem for path in CHAPTERS} - {
    "01_queries_keys_values",
    "02_kernel_regression",
    "03_attention_scoring",
    "04_masks",
    "05_seq2seq",
    "06_bahdanau_attention",
    "07_self_attention",
    "08_multi_head_attention",
    "09_positional_encoding",
    "10_transformer_block",
    "11_transformer",
    "12_decoding_and_gpt",
    "13_reading_attention",
    "14_vision_transformer",
    "15_attention_maps",
    "16_swin",
    "17_detr",
    "x_attention_since_llama",
    "x_attribution",
    "x_bandwidth",
    "x_cost_of_attention",
    "x_llama",
    "x_positions_beyond_text",
    "x_pytorch",
    "x_real_language_model",
    "x_speculative_decoding",
    "x_training_transformers",
}
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
@each([page for page in CHAPTERS if page.stem not in NOT_YET])
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
