"""The library of the interactive book *Attention, Made Visible*.

One module for each thing the book defines, from ``masks`` and ``attention`` to
``transformer``, ``gpt`` and ``vit``; ``data``, ``training``, ``decoding`` and
``metrics`` to learn, generate and score; ``recording`` and ``ablation`` to look inside,
``plotting`` to show what is there. Import from the module you need; importing the
package alone costs nothing.
"""

__version__ = "3.0.0"
