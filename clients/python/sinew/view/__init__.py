"""The page that shows bodies, plans and settings, and steers them."""
