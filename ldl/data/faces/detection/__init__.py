"""Finding the faces in photographs."""
