"""The program fm, as a binary that pip has installed."""
import importlib.metadata
import os
import shutil

DISTRIBUTION = "foundation-models-fm"


def path():
    """The path of the binary of this installation, wherever pip has put it."""
    try:
        for file in importlib.metadata.files(DISTRIBUTION) or []:
            if file.name == "fm" and os.access(file.locate(), os.X_OK):
                return os.path.realpath(file.locate())
    except importlib.metadata.PackageNotFoundError:
        pass
    found = shutil.which("fm")
    if found is None:
        raise FileNotFoundError("The program fm is not installed.")
    return found
