"""Serve with settings given as JSON; what follows them is run first, to break things on purpose."""

import json
import sys

from streamridge.service.settings import settings_of
from streamridge.service.web.server import run

if __name__ == "__main__":
    for patch in sys.argv[2:]:
        exec(patch)
    sys.exit(run(settings_of(**json.loads(sys.argv[1]))))
