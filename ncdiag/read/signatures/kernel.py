"""What the kernel and its drivers say of a host's hardware."""

from ncdiag.read.signatures import amdgpu, hardware, nic, processes, storage, sxid, xid
from ncdiag.read.signatures.row import Signature

ROWS: tuple[Signature, ...] = (
    *xid.ROWS,
    *sxid.ROWS,
    *amdgpu.ROWS,
    *nic.ROWS,
    *hardware.ROWS,
    *processes.ROWS,
    *storage.ROWS,
)
