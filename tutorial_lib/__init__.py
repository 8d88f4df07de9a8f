"""The library of the interactive book *Attention, Made Visible*.

One module for each thing the book defines: ``masks``, ``kernels``, ``attention``,
``seq2seq``; ``data`` to learn from, ``training``, ``decoding`` and ``metrics`` to
learn, write and score; ``recording`` to look inside, ``plotting`` and ``figures`` to
show what is there, ``exercises`` to check what a reader wrote. Import from the module
you need; importing the package alone costs nothing.
"""

__version__ = "1.0.0"
