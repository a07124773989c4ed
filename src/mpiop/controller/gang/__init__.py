"""Gang scheduling: the objects that tell a scheduler which pods belong together, and which API it serves."""
