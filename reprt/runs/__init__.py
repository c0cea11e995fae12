"""What is asked of a run, and the folder that holds it."""
