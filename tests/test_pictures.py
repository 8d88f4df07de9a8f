"""Pictures of ideas: what each file must hold, and that chapters show what is there."""

import base64
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_rgb
from PIL import Image
from readable import contrast

from tools.notebooks import chapters, code_cells, read_notebook, source_of
from tools.pictures import FOLDER, draw, drifted
from tutorial_lib.plotting import show_picture
from tutorial_lib.plotting.colors import LIGHT

ROOT = Path(__file__).parents[1]
PICTURES = sorted((ROOT / "tutorial_lib" / "plotting" / "svg").glob("*.svg"))
COLOR = re.compile(r"\.(\w+) \{ color: (#\w+); \}")
PALE = re.compile(r"\.(?:box|lane)\.(\w+) \{ fill: (#\w+); \}")
pictures = pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)


@pictures
def test_a_picture_says_what_it_shows_and_can_be_read_on_a_phone(path):
    root = ElementTree.parse(path).getroot()
    title = root[0]
    text = root[1]
    assert root.get("id") == path.stem and root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {text.get('id')}"
    assert title.text and len(text.text) > 40
    width = float(root.get("viewBox").split()[2])
    sizes = [float(element.get("font-size", 15)) for element in root.iter()]
    assert width < 480 and min(sizes) >= 11


@pictures
def test_a_picture_has_the_colors_of_the_book_and_its_texts_stand_out(path):
    svg = path.read_text(encoding="utf-8")
    for name, color in COLOR.findall(svg):
        assert color == LIGHT[name]
        assert contrast(to_rgb(color), (1, 1, 1)) > 4.4
    for _, pale in PALE.findall(svg):
        assert contrast(to_rgb(LIGHT["ink"]), to_rgb(pale)) > 4.5


@pictures
def test_a_picture_needs_no_other_file_and_styles_nothing_but_itself(path):
    svg = path.read_text(encoding="utf-8")
    addresses = re.findall(r"\b(?:href|src)=\"([^\"]{,12})|url\((.{12})", svg)
    for address in ["".join(pair) for pair in addresses]:
        assert address.startswith(("#", "data:image/"))
    [style] = re.findall(r"<style>(.*?)</style>", svg, re.DOTALL)
    for selectors in re.findall(r"^(.*?) \{", style, re.MULTILINE):
        for selector in selectors.split(","):
            assert selector.split()[0] == f"#{path.stem}"
    assert len(svg) < 30_000


@pictures
def test_a_photograph_in_a_picture_can_be_turned_so_that_dark_pages_turn_it_back(path):
    svg = path.read_text(encoding="utf-8")
    turns = re.search(r"#dark:target ~ svg use { filter: url\(#(\w+-turned)\); }", svg)
    assert bool(turns) == ("<image" in svg)
    if turns:
        assert '<g id="dark"/>' in svg and f'<filter id="{turns[1]}"' in svg


def test_every_picture_is_shown_and_every_one_that_is_shown_exists():
    shown = set()
    for path in chapters(ROOT):
        for cell in code_cells(read_notebook(path)):
            shown.update(re.findall(r"show_picture\(\"(\w+)\"\)", source_of(cell)))
    assert shown == {path.stem for path in PICTURES}


@pictures
def test_a_picture_is_a_png_file_too_of_the_same_drawing_in_the_same_size(path):
    assert not drifted(path), "run python -m tools pictures"
    width = int(re.search(r"<svg\b[^>]*\bwidth=\"(\d+)\"", path.read_text("utf-8"))[1])
    with Image.open(path.with_suffix(".png")) as image:
        assert image.width == width
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    assert path.with_suffix(".png").stat().st_size < 40_000


def test_a_picture_that_changed_is_drawn_again_and_no_other(tmp_path, chromium):
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (tmp_path / "book").symlink_to(ROOT / "book")
    for path in PICTURES[:2]:
        shutil.copy(path, folder)
        shutil.copy(path.with_suffix(".png"), folder)
    assert draw(tmp_path) == []
    changed = folder / PICTURES[1].name
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace("</svg>", "<g/></svg>"), encoding="utf-8")
    assert drifted(changed) and draw(tmp_path) == [changed.stem]
    assert not drifted(changed)


def test_notebooks_store_what_jupyterlab_shows_before_anything_has_run():
    for path in chapters(ROOT):
        for cell in code_cells(read_notebook(path)):
            for output in cell["outputs"]:
                if "image/svg+xml" in output.get("data", {}):
                    [name] = re.findall(r"show_picture\(\"(\w+)\"\)", source_of(cell))
                    stored = "".join(output["data"]["image/png"])
                    drawn = DisplayFormatter().format(show_picture(name))[0]
                    assert stored == drawn["image/png"], (path.name, cell["id"])


def test_a_notebook_stores_a_picture_as_its_text_and_a_photograph_stays_light():
    data, metadata = DisplayFormatter().format(show_picture("masks"))
    assert data["image/svg+xml"].startswith("<svg") and metadata == {}
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    _, metadata = DisplayFormatter().format(show_picture("vision_transformer"))
    assert metadata == {"image/svg+xml": {"needs_background": "light"}}


def test_an_unknown_picture_is_refused_with_the_names_of_all():
    with pytest.raises(ValueError, match=r"no picture mask: choose one of .*, masks,"):
        show_picture("mask")
