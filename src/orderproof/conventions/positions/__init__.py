"""Tables of positions, and questions about them."""
