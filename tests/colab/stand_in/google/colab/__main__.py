"""A kernel as Colab starts it: ``google.colab`` is imported before any cell runs."""

from ipykernel.kernelapp import launch_new_instance

launch_new_instance()
