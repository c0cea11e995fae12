"""Sources of text, vocabularies and batches."""

from reprt.data.packing import pack

__all__ = ["pack"]
