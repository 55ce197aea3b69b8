"""Better optima: races between starts, moves that leave poor optima, collapsed components."""
