"""The terminal UI: a front end over the same parts as the command line."""
