"""`make up` and `make down`: the dev stack on the embedded cluster or on the user's own."""
