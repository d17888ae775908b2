"""Reads a log: finds its entries, checks them and converts them to rows."""
