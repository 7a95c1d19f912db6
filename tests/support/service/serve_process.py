"""Serve with settings given as JSON; further arguments are Python code that runs first."""

import json
import sys

from streamridge_service.http.server import run
from streamridge_service.settings import settings_of

if __name__ == "__main__":
    for patch in sys.argv[2:]:
        exec(patch)
    sys.exit(run(settings_of(**json.loads(sys.argv[1]))))
