"""What tree networks are made of: means of all nodes, mutations, exact probabilities, symmetries, fast drawing."""
