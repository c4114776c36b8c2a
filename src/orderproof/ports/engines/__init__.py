"""The inference engines, one file each; `registry` finds them by listing this folder."""
