"""How an autograd graph becomes a picture: read it, fold what repeats, place it in rows, write SVG."""
