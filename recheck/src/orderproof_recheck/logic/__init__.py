"""Terms, formulas, their notation, and the procedure that decides them."""
