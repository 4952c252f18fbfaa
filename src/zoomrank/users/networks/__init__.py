"""Parts of tree networks: means of all nodes, mutations, exact probabilities, symmetries, fast drawing."""
