"""The authored pair bank: base tasks, controlled mutations and the design check."""
