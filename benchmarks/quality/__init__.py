"""Quality of retrieval and ranking on real questions, and the pairs to train on."""
