"""One module a page; each draws what stands below the status line."""
