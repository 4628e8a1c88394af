"""Exchange with other libraries and with files."""
