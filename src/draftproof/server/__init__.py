"""A page on loopback that shows a deployment live: its views, its drift, and what is accepted over time."""
