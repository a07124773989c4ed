"""How long work still takes on this machine, from what it has taken here."""
