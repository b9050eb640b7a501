"""Reading what servers print."""
