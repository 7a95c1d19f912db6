"""`python -m streamridge`: the command `streamridge`."""

from streamridge_command import main

if __name__ == "__main__":
    main()
