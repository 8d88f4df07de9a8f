"""Stands for Google Colab's own package: that it is there is all that notebooks ask."""
