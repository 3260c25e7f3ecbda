"""Watch the cells of a matrix over nights: series, their noise, and the changes in them."""
