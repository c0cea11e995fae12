"""Sources of text, vocabularies and batches."""

__all__ = ["pack"]


def __getattr__(name):
    # Packing loads Keras, and reading a recipe does not.
    if name == "pack":
        from reprt.data.packing import pack

        return pack
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
