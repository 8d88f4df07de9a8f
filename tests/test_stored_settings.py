"""Pictures of *Try it* with stored settings: on the page menus choose among them."""

import itertools
import json

import pytest
from built_pages import CHAPTERS, ROOT, each, needs_pages

from tools.notebooks import read_notebook

STORED = "settings"
SHOWN = """() => {
  const cell = document.querySelector(".settings").closest(".cell");
  const place = cell.querySelector(".text_html");
  const printed = cell.querySelector(".output.stream")?.textContent;
  const drawn = place?.querySelector("[data-figure]")?.dataset.figure;
  return printed + (drawn ?? place?.innerHTML ?? cell.querySelector("img").src);
}"""
LOADED = "() => Object.keys(window.tutorialSettings ?? {}).length"
WAITED = "() => !document.querySelector('.settings [role=status]').textContent"
# What is seen in each place, where a menu that has another value is set to it.
ALL_SHOWN = f"""async places => {{
  const shown = {SHOWN};
  const menus = [...document.querySelectorAll(".settings select")];
  const status = document.querySelector(".settings [role=status]");
  const seen = [];
  for (const place of places) {{
    for (const [i, menu] of menus.entries()) {{
      if (menu.selectedIndex === place[i]) continue;
      menu.selectedIndex = place[i];
      menu.dispatchEvent(new Event("change"));
    }}
    while (status.textContent) await new Promise((go) => setTimeout(go));
    seen.push(shown());
  }}
  return [menus.map((menu) => menu.options.length), seen];
}}"""


def stored_in(page_file):
    """Return what `explore` stored in the notebook of a page, or nothing."""
    notebook = read_notebook(ROOT / "notebooks" / f"{page_file.stem}.ipynb")
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if STORED in output.get("metadata", {}):
                return output["metadata"][STORED]
    return None


ALIVE = [page for page in CHAPTERS if stored_in(page)]


def test_all_settings_differ():
    for page_file in ALIVE:
        drawn = [json.dumps(one) for one in stored_in(page_file)["drawn"]]
        assert len({*drawn}) == len(drawn), page_file.stem


@needs_pages
@each(ALIVE)
def test_menus_show_each_setting_and_load_nothing_before(page_file, loaded):
    page, problems = loaded(page_file)
    stored = stored_in(page_file)
    page.evaluate("() => [...document.querySelectorAll('.show')].at(1)?.click()")
    assert page.evaluate(LOADED) == 0
    counts = [len(control["values"]) for control in stored["controls"]]
    places = [*itertools.product(*map(range, counts))]  # the last changes fastest
    assert len(places) == len(stored["drawn"])
    menus, seen = page.evaluate(ALL_SHOWN, places)
    assert menus == counts
    assert len({*seen}) == len(seen)
    assert problems == []


@needs_pages
@pytest.mark.parametrize("page_file", ALIVE[:1])
def test_a_menu_works_with_the_keyboard_and_has_a_name(page_file, loaded):
    page, _ = loaded(page_file)
    control = stored_in(page_file)["controls"][0]
    menu = page.get_by_label(control["label"], exact=True)
    before = page.evaluate(SHOWN)
    menu.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(WAITED)
    assert page.evaluate(SHOWN) != before
