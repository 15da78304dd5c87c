"""Shows: the pages that lead from a reuse to its issuance."""
