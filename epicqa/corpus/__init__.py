"""The corpus: documents in, sentences out."""
