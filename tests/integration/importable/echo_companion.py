"""A companion for tests: says who it is, then echoes, hangs or crashes as it is told."""

import json
import os
import sys
import time

sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    if request == "hang":
        time.sleep(600)
    if request == "crash":
        sys.exit("it crashed")
    sys.stdout.write(json.dumps(request) + "\n")
    sys.stdout.flush()
