"""Files and limits: files written whole or not at all, hashes, scratch files, sizes as people write them."""
