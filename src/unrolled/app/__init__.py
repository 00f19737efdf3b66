"""The command: parse, call the library, print. Nothing imports this package."""
