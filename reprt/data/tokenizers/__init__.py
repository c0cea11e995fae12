"""From words to pieces and back."""
