"""Bodies that move under plans, and what a page shows of them."""
