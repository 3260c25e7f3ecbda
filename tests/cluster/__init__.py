"""Tests on a real control plane: a package, so that their fixtures of scope `package` end with the last of them."""
