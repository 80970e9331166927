"""The display filter: text in, a condition on an exchange out."""
