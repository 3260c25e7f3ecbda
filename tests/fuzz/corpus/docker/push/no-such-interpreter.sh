#!/no/such
