"""`python -m streamridge`: the command `streamridge`."""

from streamridge.cli.main import app

if __name__ == "__main__":
    app(prog_name="streamridge")
