"""Terms and formulas over indices, and the solver that decides implications between them."""
