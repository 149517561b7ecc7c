"""The rules of the lint, a module a family; ``table`` says what each one is."""
