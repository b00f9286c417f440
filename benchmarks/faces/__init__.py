"""Ages of faces: recipes of training, and models that were trained elsewhere."""
