"""Tests with a real Kueue: a package, so that its fixture of scope `package` ends with the last of them."""
