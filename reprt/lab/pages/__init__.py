"""Pages, tables and pictures, from the files of the runs alone."""
