"""Doors to other packet libraries: packets taken from them and given back to them."""
