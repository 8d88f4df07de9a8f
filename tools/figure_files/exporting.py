"""Exporting: the figures of chapters into a folder, one file each, with an index.

A chapter that fails costs nobody else's figures, and keeps those it drew before. Every
file is complete or not there.

This module does not know how a figure is drawn, nor what its parameters do.
"""

import base64
import os
import re
import sys
from pathlib import Path

from tools.figure_files import catalogue, pages
from tools.figure_files.drawing import CLAIM, PICTURE, PREVIEW
from tools.figure_files.preparing import prepare, settings_for
from tools.files import read_text, write_whole
from tools.notebooks import STOPPED, code_cells, run
from tutorial_lib.progress_bar import progress_bar

STORED = "image/png"  # the form in which notebooks keep their pictures


def export(root, out, *, chapters=(), only=(), settings=(), drawing=None):
    """Write figures of the book under ``root`` into the folder ``out``.

    ``chapters`` and ``only`` pick chapters and figures, all without them; ``settings``
    are texts like ``seed=7``. Without a ``drawing`` the pictures are those that the
    notebooks store, and nothing runs. Returns how many chapters failed. Raises
    ValueError for a chapter, figure or parameter that does not exist, and OSError if a
    file cannot be written.
    """
    read = catalogue.read_chapters(root, chapters)
    wanted = catalogue.choose(read, only)
    read = [chapter for chapter in read if chapter.path in wanted]
    settings, book, out = settings_for(read, settings), _title(root), _folder(out)
    harvest = _stored if drawing is None else _drawn
    sections, problems = [], {}
    for chapter, found, failures in harvest(read, wanted, settings, drawing):
        entries = [entry for entry in found if entry.name in wanted[chapter.path]]
        shown = [_write(out, chapter, entry, drawing) for entry in entries]
        missing = _missing(wanted[chapter.path], shown)
        problems[chapter.path.stem] = [*failures, *missing]
        remarks = [*_remarks(settings[chapter.path]), *failures, *missing]
        sections.append((chapter.title, remarks, [one for one in shown if one]))
    style = drawing and drawing.style
    index = pages.index_page(sections, book=book, style=style)
    write_whole(out / "index.html", index)
    not_begun = {path.stem: ["not begun"] for path in wanted}
    problems = not_begun | problems
    _report(out, sections, problems)
    return sum(map(bool, problems.values()))


def _stored(chapters, wanted, settings, drawing):
    for chapter in chapters:
        yield chapter, catalogue.figures_of(chapter), []


def _drawn(chapters, wanted, settings, drawing):
    """Run chapter by chapter; yield each with its figures and what failed."""
    notebooks = []
    for chapter in chapters:
        figures = catalogue.figures_of(chapter)
        cells = {one.cell for one in figures if one.name in wanted[chapter.path]}
        prepared = prepare(chapter, cells, settings[chapter.path], drawing)
        notebooks.append(prepared)
    counts = [len(code_cells(notebook)) for notebook in notebooks]
    with progress_bar(sum(counts), unit="cell") as bar:
        for i, (chapter, prepared) in enumerate(zip(chapters, notebooks, strict=True)):
            bar.set_postfix_str(chapter.path.stem)
            folder = chapter.path.parent
            # With other settings, training may take minutes.
            notebook, failure = run(prepared, folder, tick=bar.update, timeout=None)
            bar.update(sum(counts[: i + 1]) - bar.n)  # also where it stopped early
            ran = chapter._replace(notebook=notebook)
            _tell_claims(ran, bar)
            failures = [failure.partition("\n")[0]] if failure else []
            yield ran, catalogue.figures_of(ran), failures
            if failure == STOPPED:
                return


def _tell_claims(chapter, bar):
    for cell in chapter.notebook["cells"]:
        for output in cell.get("outputs", []):
            if CLAIM in output.get("data", {}):
                bar.write(
                    f"{chapter.path.stem}, cell {cell['id']}: a claim of the chapter "
                    f"does not hold here: {output['data'][CLAIM]}"
                )


def _write(out, chapter, entry, drawing):
    """Write the files of one figure; return it for the index, or None without any."""
    suffix = "png" if entry.is_live or drawing is None else drawing.format
    content = catalogue.shown(entry.outputs, PICTURE if drawing else STORED)
    if not content:
        return None
    files = [f"{entry.name}.{suffix}"]
    write_whole(out / files[0], base64.b64decode(content))
    if entry.is_live:
        files.append(f"{entry.name}.html")
        page = pages.live_page(
            catalogue.shown(entry.outputs, "text/html"),
            name=entry.name,
            chapter=chapter.title,
            caption=entry.caption,
            style=drawing and drawing.style,
        )
        write_whole(out / files[1], page)
    preview = base64.b64decode(catalogue.shown(entry.outputs, PREVIEW)) or None
    return pages.Shown(entry.name, entry.caption, entry.alternative, files, preview)


def _missing(names, shown):
    written = {figure.name for figure in shown if figure}
    missing = [name for name in names if name not in written]
    return [f"not written: {', '.join(missing)}"] if missing else []


def _remarks(settings):
    if not settings:
        return []
    values = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
    return [f"Drawn with {values}. The captions tell of the book's own figures."]


def _title(root):
    path = Path(root) / "_config.yml"
    found = re.search(r"^title: *(.*)$", read_text(path), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path} has no line for the title of the book: add title:")
    return found.group(1)


def _folder(out):
    """Make the folder for the figures before anything runs for hours."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK):
        raise ValueError(f"cannot write into {out}: name another folder with --out")
    return out


def _report(out, sections, problems):
    count = sum(len(figures) for _, _, figures in sections)
    figures = "1 figure" if count == 1 else f"{count} figures"
    print(f"Wrote {figures}: open {out / 'index.html'}")
    for stem, failures in problems.items():
        for failure in failures:
            print(f"{stem}: {failure}", file=sys.stderr)
