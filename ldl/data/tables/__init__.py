"""Tables of features with distributions or values."""
