"""The user's object and its parts."""
