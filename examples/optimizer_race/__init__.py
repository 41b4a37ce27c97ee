"""Every update rule on the books' test functions: printed traces to six digits, and how many steps each needs."""
