"""Which encoding should I use? Questions with exact ceilings, on which small transformers are trained and compared."""
