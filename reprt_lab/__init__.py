"""Recipes from their text to their page, on this machine or on many."""
