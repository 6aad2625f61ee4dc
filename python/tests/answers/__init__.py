"""What the program answered to a wide range of stacks and traces, kept to be compared with."""
