"""The structured forest of Dollar & Zitnick 2015: channels, patches, trees, votes."""
