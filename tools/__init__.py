"""Chores of this repository; nothing here is installed."""
