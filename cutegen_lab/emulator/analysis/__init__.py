"""What a kernel may do with addresses, found from its PTX before it runs."""
