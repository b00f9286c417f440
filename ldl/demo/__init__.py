"""A local page that shows the predictions of a trained model for an image or a row."""
