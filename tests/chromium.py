"""Where Chromium is; run as a script it says in one line what to install if there is none."""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Path of a Chromium: CHROMIUM if set, else the first of its usual names."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


if __name__ == "__main__" and find() is None:
    sys.exit(
        "error: no Chromium found; expected one for the browser checks: install the package "
        "'chromium' (Debian, Ubuntu: apt-get install chromium) or set CHROMIUM to its path"
    )
