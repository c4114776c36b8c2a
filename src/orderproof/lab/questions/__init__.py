"""One question a file, found by its being here."""
