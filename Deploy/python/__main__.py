import os
import sys

from . import path

binary = path()
os.execv(binary, [binary, *sys.argv[1:]])
