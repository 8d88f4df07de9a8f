"""Credits: where a figure that leaves the book is from, and how it may be used.

This module does not know where figures come from, nor where they go.
"""

import io
import re
from pathlib import Path

from tools.files import read_text
from tools.notebooks import short_name, source_of
from tools.repository import VERSION

LICENSE = "CC BY 4.0"
TITLE = re.compile(r"^title: (.*)$", re.MULTILINE)
TOPIC = re.compile(r"^# ([^:\n]+)")


def book_of(root):
    """Return the title and the version of the book under ``root``."""
    [title] = TITLE.findall(read_text(Path(root, "_config.yml")))
    [version] = VERSION.findall(read_text(Path(root, "pyproject.toml")))
    return f"{title} {version}"


def label_of(path, notebook, number):
    """Return what the page of a notebook calls its figure of this number, from 1.

    Excursions have no numbers: theirs are named after them.
    """
    chapter = short_name(path)
    if chapter.isdigit():
        return f"Fig. {int(chapter)}.{number}"
    return f"{TOPIC.match(source_of(notebook['cells'][0]))[1]}, Fig. {number}"


def credit(book, label):
    """Return the line below a figure."""
    return f"{book} · {label} · {LICENSE}"


def credited(png, line):
    """Return the bytes of a PNG with a small line below the picture and in its data."""
    from matplotlib.font_manager import findfont
    from PIL import Image, ImageDraw, ImageFont
    from PIL.PngImagePlugin import PngInfo

    from tutorial_lib.plotting.colors import LIGHT
    from tutorial_lib.plotting.figure import CREDIT, CREDIT_GAP, CREDIT_SIZE

    picture = Image.open(io.BytesIO(png))
    dpi = picture.info["dpi"]
    font = ImageFont.truetype(findfont("DejaVu Sans"), CREDIT_SIZE * dpi[0] / 72)
    top = picture.height + CREDIT_GAP * dpi[0]
    _, _, right, bottom = ImageDraw.Draw(picture).textbbox((0, top), line, font)
    margin = round(CREDIT_GAP * dpi[0])
    size = max(picture.width, round(right) + 2 * margin), round(bottom) + margin
    paper = Image.new("RGB", size, picture.convert("RGB").getpixel((0, 0)))
    paper.paste(picture, (0, 0))
    ImageDraw.Draw(paper).text((margin, top), line, LIGHT["quiet"], font)
    about, buffer = PngInfo(), io.BytesIO()
    about.add_text(CREDIT["png"], line)
    paper.save(buffer, "png", optimize=True, dpi=dpi, pnginfo=about)
    return buffer.getvalue()
