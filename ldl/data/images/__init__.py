"""Images with votes or values, and the base of all data modules of images."""
