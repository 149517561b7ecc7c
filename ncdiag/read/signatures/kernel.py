"""What the kernel and its drivers say of a host's hardware."""

from ncdiag.read.signatures import xid
from ncdiag.read.signatures.row import Signature

ROWS: tuple[Signature, ...] = (*xid.ROWS,)
