"""The model that writes in the page: its numbers, and what a reader does with it."""

import functools
import json
import re

import pytest
import torch
import torch.nn.functional as F
from figures_in_browser import (
    LETTERS,
    WRITER,
    press,
    readout,
    without_isolates,
    writing,
)

from tutorial_figures import show_writing
from tutorial_figures.fragment import shipped
from tutorial_figures.writing import encode, in_8_bits
from tutorial_lib.gpt import GPT
from tutorial_lib.interpret import ablate_head, record_attention

CODE = "".join(map(shipped, ("base.js", "colors.js", "writing_model.js")))
READ = """
const [step, cache] = [writingModel(data), { layers: [] }];
const read = tokens.map((token) => step(token, cache, new Set(off)));
return { logits: read.map(({ logits }) => [...logits]), maps: read.at(-1).maps };
"""
WRITE = """
const settings = { temperature: 0.7, p: 0.9, seed: 3 };
const ask = { given: tokens, off, settings, until, since: 0 };
const steps = makeWriter(data);
const first = steps({ ...ask, until: 20 });
return [steps(ask), makeWriter(data)(ask), first];
"""
TEXT = "a bad cab\ndeed"


@pytest.fixture(scope="module")
def gpt():
    torch.manual_seed(1)
    model = GPT(len(LETTERS), 16, 4, 2, max_tokens=24)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return in_8_bits(model).eval()


def by_javascript(shown, figure, program, off=(), **values):
    """Run a program with the figure's model in the browser."""
    values = values | {
        "data": figure.data,
        "tokens": encode(TEXT, LETTERS),
        "off": [*off],
    }
    call = """([code, names, values]) =>
        JSON.stringify(Function(...names, code)(...values))"""
    given = [CODE + program, [*values], [*values.values()]]
    return json.loads(shown(writing()).evaluate(call, given))


def by_torch(model, off=()):
    """Return the logits after each token, and the last token's weights by head."""
    tokens = torch.tensor([encode(TEXT, LETTERS)])
    with torch.no_grad(), record_attention(model) as maps:
        logits = model(tokens)[0]
    return logits, torch.cat([weights[0, :, -1] for weights in maps.values()])


@pytest.mark.parametrize("kind", ["Llama", "GPT"])
def test_logits_and_weights_are_those_of_torch(shown, gpt, kind):
    model = WRITER if kind == "Llama" else gpt
    result = by_javascript(shown, show_writing(model, LETTERS, "a", length=9), READ)
    logits, maps = by_torch(model)
    assert torch.allclose(torch.tensor(result["logits"]), logits, atol=1e-4, rtol=0)
    assert torch.allclose(torch.tensor(result["maps"]), maps, atol=1e-5)


def test_a_head_that_is_off_is_one_that_is_ablated(shown):
    result = by_javascript(shown, writing(), READ, off=[5])  # layer 1, head 1
    with ablate_head(WRITER.layers[1].attention.W_O, 1, 4):
        logits, _ = by_torch(WRITER)
    assert torch.allclose(torch.tensor(result["logits"]), logits, atol=1e-4, rtol=0)
    assert not torch.allclose(logits, by_torch(WRITER)[0], atol=0.1)


def test_the_same_draws_write_the_same_text_also_beyond_the_model_s_length(shown):
    later, whole, first = by_javascript(shown, writing(), WRITE, until=90)
    assert later == whole and len(whole["tokens"]) == len(whole["steps"]) == 90
    assert first["tokens"] == whole["tokens"][:20]
    assert whole["tokens"][: len(TEXT)] == encode(TEXT, LETTERS)
    probs = torch.tensor([step["probs"] for step in whole["steps"]])
    assert torch.allclose(probs.sum(dim=-1), torch.ones(90), atol=1e-4)
    assert (probs == 0).any()  # what top-p cut


def test_temperature_and_top_p_are_those_of_the_library(shown):
    from tutorial_lib.decoding import apply_temperature, keep_top_p

    *_, first = by_javascript(shown, writing(), WRITE, until=20)
    logits = torch.tensor(by_javascript(shown, writing(), READ)["logits"])
    probs = keep_top_p(apply_temperature(logits, 0.7), 0.9).softmax(dim=-1)
    result = torch.tensor([step["probs"] for step in first["steps"][: len(TEXT)]])
    assert torch.allclose(result, probs, rtol=0, atol=1e-6)


def test_a_text_of_other_words_is_refused_where_the_figure_is_made():
    with pytest.raises(ValueError, match="does not know: 'x'"):
        show_writing(WRITER, LETTERS, "ax", length=9)
    with pytest.raises(ValueError, match="3 words do not name"):
        show_writing(WRITER, ["a", "b", "c"], "a")
    with pytest.raises(ValueError, match="at most 24, got 25"):
        show_writing(WRITER, LETTERS, "a", length=25, max_tokens=24)


# --- What a reader does -----------------------------------------------------------

LINE = "\nbe a ", "bad cab"
IS_FOCUSED = "node => node.getRootNode().activeElement === node"
BELOW = """addEventListener("DOMContentLoaded", () => {
  document.body.style.paddingTop = "1400px";
  document.body.style.paddingBottom = "1000px";
});"""
COUNTED = """
const Counted = Worker;
window.workers = 0;
window.Worker = class extends Counted {
  constructor(...given) { super(...given); window.workers += 1; }
};
"""


@functools.cache
def with_line():
    return show_writing(WRITER, LETTERS, "a bad cab", length=20, line=LINE)


@functools.cache
def by_itself():
    named = {"length": 28, "max_tokens": 40, "temperature": 30.0, "autoplay": True}
    return show_writing(WRITER, LETTERS, "a bad cab", **named)


def probs_after(text):
    with torch.no_grad():
        logits = WRITER(torch.tensor([encode(text, LETTERS)]))[0, -1]
    return (logits / 0.8).softmax(dim=-1)


def line_loss():
    given = encode(LINE[0], LETTERS)
    line = encode(LINE[1], LETTERS)
    with torch.no_grad():
        logits = WRITER(torch.tensor([given + line]))[0, len(given) - 1 : -1]
    return F.cross_entropy(logits, torch.tensor(line)).item()


def text_of(page):
    return page.locator(".text").text_content()


def wait_for_text(page, condition):
    page.wait_for_function(
        f"""() => {{
        const shown = document.querySelector("[data-figure]").shadowRoot;
        const text = shown.querySelector(".text").textContent;
        return {condition};
        }}"""
    )


def test_nothing_is_computed_before_it_is_asked_for(shown):
    page = shown(writing())
    text = text_of(page)
    assert text.startswith("a bad cab") and len(text) == 20
    assert "Press Write, or begin with a text of your own." in readout(page)
    assert page.locator(".next .label").count() == 6  # as they were stored
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


def test_a_prompt_is_gone_on_with_by_the_same_draws(shown):
    page = shown(writing(), reduced_motion="reduce")
    page.get_by_label("a text to go on with").fill("")
    page.keyboard.type("bad ")
    page.keyboard.press("Enter")
    wait_for_text(page, "text.startsWith('bad ') && text.length >= 64")
    before = text_of(page)
    page.get_by_role("button", name="Sample again").click()
    wait_for_text(page, f"text !== {json.dumps(before)} && text.length >= 64")


def test_a_head_that_is_off_is_compared_at_the_same_text(shown):
    page = shown(with_line())
    text = text_of(page)
    head = page.get_by_role("button", name="layer 0, head 2")
    head.click()
    page.locator(".next.compared").wait_for()
    assert text_of(page) == text
    with ablate_head(WRITER.layers[0].attention.W_O, 2, 4):
        without = probs_after(text)
    with_all = probs_after(text)
    shown_bars = page.locator(".next .number").all_text_contents()
    labels = page.locator(".next .label").all_text_contents()
    assert not torch.allclose(without, with_all, atol=0.1)
    for label, bar in zip(labels, shown_bars, strict=True):
        token = LETTERS.index({"␣": " ", "↵": "\n"}.get(label, label))
        before, after = map(float, bar.split(" → "))
        assert before == pytest.approx(with_all[token].item(), abs=0.006)
        assert after == pytest.approx(without[token].item(), abs=0.006)
    head.click()
    page.locator(".next:not(.compared)").wait_for()
    assert text_of(page) == text


def test_the_loss_is_that_of_the_line_with_and_without_the_heads(shown):
    page = shown(with_line())
    number = page.locator(".loss .number")
    assert number.text_content() == f"{line_loss():.2f}"
    page.get_by_role("button", name="layer 1, head 3").click()
    page.locator(".loss.compared").wait_for()
    with ablate_head(WRITER.layers[1].attention.W_O, 3, 4):
        without = line_loss()
    assert abs(without - line_loss()) > 0.02
    assert number.text_content() == f"{line_loss():.2f} → {without:.2f}"
    assert f"from {line_loss():.2f} to {without:.2f}" in readout(page)


def test_with_all_heads_off_it_writes_anew(shown):
    page = shown(writing(), reduced_motion="reduce")
    text = text_of(page)
    page.get_by_role("button", name="All heads off").click()
    wait_for_text(page, "text.length >= 69")
    assert text_of(page)[:9] == text[:9] and text_of(page)[:20] != text
    assert page.locator(".panel [aria-pressed=true]").count() == 0
    page.get_by_role("button", name="All heads on").click()
    wait_for_text(page, f"text.startsWith({json.dumps(text)})")
    assert page.locator(".panel [aria-pressed=false]").count() == 0


def test_by_itself_it_writes_once_and_the_same_as_was_stored(shown):
    page = shown(by_itself())
    page.get_by_role("button", name="Pause").wait_for()
    assert page.locator(".text.writes").count() == 1
    stored = by_itself().data["prompt"] + by_itself().data["written"]
    wait_for_text(page, f"text === {json.dumps(stored)}")
    page.get_by_role("button", name="Continue").wait_for()
    page.wait_for_timeout(500)
    assert text_of(page) == stored


def test_by_itself_it_can_be_stopped_and_two_presses_do_not_run_twice(shown):
    page = shown(by_itself(), script=COUNTED)
    page.get_by_role("button", name="Pause").click()
    length = len(text_of(page))
    page.wait_for_timeout(400)
    assert len(text_of(page)) <= length + 1 < 20
    page.get_by_role("button", name="Write").dblclick()
    wait_for_text(page, "text.length === 69")
    page.wait_for_timeout(300)
    assert len(text_of(page)) == 69
    assert page.evaluate("workers") == 1


def test_who_wants_no_movement_sees_the_whole_text_and_nothing_moves(shown):
    page = shown(by_itself(), reduced_motion="reduce")
    stored = by_itself().data["prompt"] + by_itself().data["written"]
    assert text_of(page) == stored
    page.wait_for_timeout(500)
    assert text_of(page) == stored
    assert page.get_by_role("button", name="Pause").count() == 0


def test_out_of_sight_it_waits(shown):
    page = shown(by_itself(), script=BELOW)
    page.wait_for_timeout(500)
    assert text_of(page) == "a bad cab"
    page.evaluate("document.querySelector('[data-figure]').scrollIntoView()")
    wait_for_text(page, "text.length === 28")


def test_heads_are_one_stop_of_tab_and_arrow_keys_go_through_them(shown):
    page = shown(writing())
    heads = page.get_by_role("toolbar").get_by_role("button")
    assert heads.count() == 8
    page.locator(".text").focus()
    press(page, "Tab")
    assert heads.nth(0).evaluate(IS_FOCUSED)
    for key, head in (("ArrowDown", 1), ("ArrowRight", 2), ("End", 7), ("Home", 0)):
        press(page, key)
        assert heads.nth(head).evaluate(IS_FOCUSED), key
    press(page, "ArrowUp")
    assert heads.nth(0).evaluate(IS_FOCUSED)
    press(page, "ArrowDown", "Tab")
    assert page.get_by_label("temperature").evaluate(IS_FOCUSED)
    press(page, "Shift+Tab")
    assert heads.nth(1).evaluate(IS_FOCUSED)


def test_what_was_written_is_told_in_words(shown):
    page = shown(by_itself())
    stored = by_itself().data["written"]
    assert "\n" in stored and " " in stored
    page.locator(".heard", has_text="It wrote:").wait_for()
    told = without_isolates(page.locator(".heard").text_content())
    assert f"It wrote: “{stored.replace(chr(10), ' line end ')}”." in told
    assert "␣" not in told and "↵" not in told
    assert page.locator(".heard").get_attribute("aria-live") == "polite"
    named = page.locator(".next").get_attribute("aria-label")
    assert re.search(r"line end 0\.\d\d", named) and "↵" not in named
    assert page.get_by_role("group", name="A language model that writes").count() == 1


def test_rows_reach_over_the_whole_text_and_the_text_takes_a_head_s_color(shown):
    page = shown(writing(), reduced_motion="reduce")
    press(page, "Tab")
    page.get_by_role("button", name="Write").click()
    wait_for_text(page, "text.length === 69")
    # Beyond its 24 tokens the model reads from the middle of what it has.
    rows = page.locator(".panel canvas")
    assert rows.evaluate_all("all => all.map((row) => row.width)") == [64] * 8
    page.locator(".text").focus()
    press(page, "Home", "ArrowRight", "ArrowRight")
    tokens = torch.tensor([encode(text_of(page)[:3], LETTERS)])
    with torch.no_grad(), record_attention(WRITER) as maps:
        WRITER(tokens)
    weights = torch.cat([layer[0, :, -1] for layer in maps.values()])  # (head, key)
    head = int(weights[:, :2].amax(dim=1).argmax())  # whose color is best seen
    page.get_by_role("toolbar").get_by_role("button").nth(head).hover()
    for place in range(2):
        letter = page.locator(".text span").nth(place)
        color = letter.evaluate("span => span.style.background")
        percent = re.search(r"(\d+)%", color)
        shown_weight = int(percent[1]) / 50 if percent else 0
        assert shown_weight == pytest.approx(weights[head, place].item(), abs=0.02)
    assert weights[head, :2].max() > 0.1


def test_a_head_that_has_a_name_bears_it(shown):
    named = {(0, 2): "previous character"}
    page = shown(show_writing(WRITER, LETTERS, "a", length=9, head_names=named))
    button = page.get_by_role("button", name="layer 0, head 2: previous character")
    assert button.text_content() == "0.2 previous character"
    with pytest.raises(ValueError, match="no head 4 in layer 0"):
        show_writing(WRITER, LETTERS, "a", length=9, head_names={(0, 4): "?"})


def test_what_is_seen_at_first_is_what_the_page_writes(shown):
    page = shown(writing())
    stored = text_of(page)
    page.locator(".text").focus()
    press(page, "ArrowLeft")
    page.locator(".next .drawn").wait_for()
    assert text_of(page) == stored  # and was computed from it
    assert page.locator(".chosen").text_content() == stored[-2]


def test_letters_that_the_model_does_not_know_are_named(shown):
    page = shown(writing())
    page.get_by_label("a text to go on with").fill("badger")
    page.keyboard.press("Enter")
    trouble = page.locator(".trouble")
    assert "does not know" in trouble.text_content() and "g" in trouble.text_content()
    assert text_of(page).startswith("a bad cab")
    page.get_by_label("a text to go on with").fill("a bad")
    page.keyboard.press("Enter")
    assert trouble.text_content() == ""


def test_a_finger_looks_at_a_head_before_it_switches_it_off(shown):
    page = shown(writing(), has_touch=True)
    head = page.locator(".panel button").nth(1)
    head.tap()
    assert head.get_attribute("aria-pressed") == "true"
    assert page.get_by_text("Shaded: what the marked character attends to").is_visible()
    head.tap()
    page.locator(".panel button[aria-pressed=false]").wait_for()
    assert head.get_attribute("aria-pressed") == "false"


def test_it_writes_letter_by_letter_until_it_is_paused(shown):
    page = shown(writing())
    page.get_by_role("button", name="Continue").click()
    wait_for_text(page, "text.length > 24")
    page.get_by_role("button", name="Pause").click()
    kept = len(text_of(page))
    page.get_by_role("button", name="Next character").click()
    wait_for_text(page, f"text.length > {kept}")


def test_arrow_keys_choose_a_token_and_show_what_was_likely_there(shown):
    page = shown(writing())
    for length in (21, 22, 23):
        page.get_by_role("button", name="Next character").click()
        wait_for_text(page, f"text.length === {length}")
    page.locator(".text").focus()
    press(page, "ArrowLeft", "ArrowLeft")
    drawn = page.locator(".next .drawn")
    at = page.locator(".chosen")
    assert text_of(page)[-3] == at.text_content()
    assert drawn.text_content() == text_of(page)[-2].replace(" ", "␣").replace(
        "\n", "↵"
    )


CHOSEN = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  const tokens = [...shadowRoot.querySelector(".text").children];
  return tokens.findIndex((token) => token.matches(".chosen"));
}"""


def test_home_and_end_go_to_the_first_and_the_last_token(shown):
    page = shown(writing())
    page.locator(".text").focus()
    press(page, "Home")
    assert page.evaluate(CHOSEN) == 0
    press(page, "End")
    assert page.evaluate(CHOSEN) == len(text_of(page)) - 1


def test_what_a_long_text_loses_is_said(shown):
    page = shown(writing(), reduced_motion="reduce")
    page.get_by_label("a text to go on with").fill("a" + "bad " * 60)
    page.keyboard.press("Enter")
    page.locator(".readout", has_text="The first 41 tokens were left out.").wait_for()
    assert text_of(page).startswith("bad bad")


SLOW = """
const Fast = Worker;
window.Worker = class extends Fast {
  postMessage(data) { setTimeout(() => super.postMessage(data), data.id && 1500); }
};
"""


def test_a_reader_who_waits_is_told_what_for(shown):
    page = shown(writing(), script=SLOW)
    page.get_by_role("button", name="Next character").click()
    page.locator(".readout", has_text="Computing …").wait_for()
    wait_for_text(page, "text.length === 21")
    assert "After" in readout(page) and "Computing" not in readout(page)


BROKEN = """
window.Worker = class {
  postMessage() { setTimeout(() => this.onerror()); }
};
"""


def test_where_nothing_can_be_computed_the_reader_is_not_left_waiting(shown):
    page = shown(writing(), script=BROKEN)
    page.get_by_role("button", name="Next character").click()
    page.locator(".readout", has_text="Cannot compute here.").wait_for()
    page.wait_for_timeout(600)
    assert readout(page) == "Cannot compute here."
