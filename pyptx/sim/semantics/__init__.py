"""What instructions compute. One module per file of the instruction table, bodies of one to five lines over the
vocabulary; `registry` joins them to the table. Nothing here knows the schedule."""
