"""Nothing is lost: checkpoints of whole runs, good order on Ctrl-C, saved agents."""

from surefoot.checkpoint.keeper import Checkpoints, Snapshot, read_checkpoint
from surefoot.checkpoint.loading import load, resume
from surefoot.checkpoint.session import Session
from surefoot.checkpoint.signals import stopping
from surefoot.checkpoint.stage import FaultPolicy

__all__ = [
    "Checkpoints",
    "FaultPolicy",
    "Session",
    "Snapshot",
    "load",
    "read_checkpoint",
    "resume",
    "stopping",
]
