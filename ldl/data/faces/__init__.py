"""Data modules of faces with ages or head poses."""
