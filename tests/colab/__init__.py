"""Try the notebooks as Google Colab runs them: ``make colab-test``."""
