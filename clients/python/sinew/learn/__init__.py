"""Learning on the engine's gradients: pip install 'sinew[learn]'."""
