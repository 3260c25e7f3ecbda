"""`benchmatrix doctor`: checks of everything that a run needs on a cluster."""
