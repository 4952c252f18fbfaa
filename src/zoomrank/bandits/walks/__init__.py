"""How the larger bandits choose and count: walks along their trees, compiled."""
