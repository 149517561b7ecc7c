"""The engine that measures with MPI: one launch of all hosts for the whole sweep."""
