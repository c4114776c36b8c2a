"""From a module to a plain graph: export, inlining of nested graphs, reading of constants."""
