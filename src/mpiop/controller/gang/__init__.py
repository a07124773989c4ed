"""Gang scheduling: the objects that group pods for a scheduler, and the discovery of its API."""
