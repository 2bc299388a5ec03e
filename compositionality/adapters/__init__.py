"""Our problems and judges inside other libraries; each module imports its library only when it is imported itself."""
