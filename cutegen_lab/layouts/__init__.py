"""CuTe layouts: their algebra, and pictures of them."""
