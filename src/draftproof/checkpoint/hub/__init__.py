"""Where the files came from: the Hugging Face cache and its download folders, proven offline."""
