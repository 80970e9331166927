"""The panes of the main screen: the list, the tree of one exchange, its bytes, the filter bar."""
