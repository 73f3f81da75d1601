"""Training of claim models: rationale, label, joint."""
