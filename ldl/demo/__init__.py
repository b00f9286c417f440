"""A local page that shows what a trained model says of a picture or a row."""
