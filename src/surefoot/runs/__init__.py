"""What a run keeps on disk and shows while it lasts: files, checkpoints, logs, progress."""
