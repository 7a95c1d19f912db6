"""Runs a function of these tests as a script: `driver.py MODULE ARGUMENTS...`.

It imports the ledger without the rest of the library, which would take a second.
"""

import sys
import types
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).parents[3]
    package = types.ModuleType("streamridge")
    package.__path__ = [str(root / "src" / "streamridge")]
    package.__version__ = "0.0.0"
    sys.modules["streamridge"] = package
    sys.path.insert(0, str(root))
    import_module(f"tests.support.ledger.{sys.argv[1]}").main(*sys.argv[2:])
