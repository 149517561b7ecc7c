"""What a benchmark of one collective found, as text, JSON, CSV, HTML and a picture."""
