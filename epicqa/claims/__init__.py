"""Scientific claims: which abstracts support or refute them, and by which sentences (SciFact)."""
