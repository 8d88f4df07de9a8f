"""Which pages still have to be brought into the third edition.

A page in it speaks in the field's words (test_words.py), and its visible code can be
typed along (test_page_code.py). What is listed here is checked by neither.
"""

from pathlib import Path

from tools.notebooks import chapters

ROOT = Path(__file__).parents[1]
SECOND = {
    "13_reading_attention",
    "15_where_it_looks",
    "16_windows_objects_transfer",
}
THIRD = [path for path in chapters(ROOT) if path.stem not in SECOND]
