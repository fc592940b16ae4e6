"""Static analysis of a kernel's PTX: how it uses addresses, and whether its blocks are independent."""
