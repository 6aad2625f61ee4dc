"""Bad input of every kind, and what each must be answered with."""
