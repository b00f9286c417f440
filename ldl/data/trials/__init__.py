"""Pictures of something and of its absence, of which a small share is tried."""
