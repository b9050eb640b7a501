"""What is known and what was measured: cases, tables and facts, typed and checked at the door."""
