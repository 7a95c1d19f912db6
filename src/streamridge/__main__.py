"""`python -m streamridge`: the command `streamridge`."""

from streamridge.cli.main import run

if __name__ == "__main__":
    run()
