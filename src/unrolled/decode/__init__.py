"""Decoding on the Stepper protocol; knows no model."""
