"""What a program that a launcher started on a host is called in the fleet."""

import argparse
import os


def own_name() -> str:
    """The name that the launcher put into our arguments, or where these say to look for it."""
    parser = argparse.ArgumentParser(description="started by ncdiag itself")
    name = parser.add_mutually_exclusive_group(required=True)
    name.add_argument("--host", help="name of this host in the fleet")
    name.add_argument("--host-from", metavar="VARIABLE", help="environment variable that holds it")
    arguments = parser.parse_args()
    host = arguments.host or os.environ.get(arguments.host_from or "")
    if not host:
        parser.error(f"{arguments.host_from} is not set")
    return str(host)
