"""Models: what a model is (model.yaml), where its files come from, how they are made and how they are checked."""
