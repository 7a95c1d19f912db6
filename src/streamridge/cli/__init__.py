"""The command `streamridge`. Other packages add commands through `commands.Commands`."""
