"""The tripwire: what an agent could reach besides its own tree is looked at before and after its leg.

`fingerprint` says what is where, `guarded` puts back what would act later; `steering`, `checkouts` and `settings` are
what the two look at.
"""
