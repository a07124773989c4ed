"""What should exist of a job, and the writes that close the gap. Pure."""
