"""Reads logs from where they lie: files, directories, standard input, compressed or not."""
