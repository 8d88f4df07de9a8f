"""Figures for slides: those of the chapters, drawn again or taken as they are stored.

``python -m tools figures`` runs chapters, with other parameters if need be, and
``exporting`` writes what they draw into a folder. In the chapter's own kernel,
``drawing`` turns each figure into the picture that was asked for. The book's notebooks
stay as they are.

Nothing here knows what a figure shows.
"""
