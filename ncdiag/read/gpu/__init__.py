"""What the programs that know GPUs print, read into records of health: text in, records out."""
