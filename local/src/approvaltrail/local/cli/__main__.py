"""`python -m approvaltrail.local.cli`: the command where it is not on the path."""

from __future__ import annotations

from approvaltrail.local.cli.entry import main

if __name__ == "__main__":
    main()
