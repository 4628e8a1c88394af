"""What masks choose, fill and place."""
