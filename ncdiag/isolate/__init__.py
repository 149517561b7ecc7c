"""What is known against hosts, what follows from it, and where that is carried out."""
