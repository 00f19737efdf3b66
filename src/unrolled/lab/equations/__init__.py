"""Equations, errata and conventions of five lecture notes, each with the check that shows it."""
