"""Sources of text, vocabularies and batches."""
