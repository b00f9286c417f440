"""Deployment of trained models: export, hub, model card, demo."""
