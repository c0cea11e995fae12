"""Sources of text, vocabularies and batches."""

__all__ = ["pack"]


def __getattr__(name):
    # Keras is loaded for who packs, and not for who reads a recipe.
    if name == "pack":
        from reprt.data.packing import pack

        return pack
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
