"""Which encoding should I use? Questions, trained and measured, beside exact ceilings."""
