"""Our problems and judges in other libraries. Each module imports its library; this package imports none of them."""
