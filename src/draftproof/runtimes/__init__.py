"""Other people's libraries, as readers: a probe that runs in their Python, a parser here."""
