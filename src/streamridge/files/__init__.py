"""Reading of sensors' files and frames; writing of tables and checkpoints."""
