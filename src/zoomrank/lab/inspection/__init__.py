"""Whether the similarity of a collection is any good."""
