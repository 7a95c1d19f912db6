"""Local regret, measured."""
