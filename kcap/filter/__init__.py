"""Display filters: from text to a condition on exchanges."""
