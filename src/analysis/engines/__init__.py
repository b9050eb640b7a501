"""Talking to servers that are there, and starting the embedded one."""
