"""The whole way at once, proven on this machine: nothing lost, nothing twice, no token anywhere."""
