"""The documents as a site: the pages and what they link to, laid out for the site generator."""
