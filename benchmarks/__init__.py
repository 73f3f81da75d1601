"""Speed and memory of epicqa, each next to a peer or a limit; see README.md."""
