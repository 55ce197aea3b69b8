"""Files and limits: atomic writes, hashes, scratch files, readable sizes."""
