"""Training side by side, in folders that explain themselves."""

from reprt.training.recipe import Recipe, RunSettings, load_recipe

__all__ = ["Recipe", "RunSettings", "load_recipe"]
