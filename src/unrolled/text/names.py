"""What columns are usually called, the likeliest first."""

TEXT_NAMES = (
    *("text", "sentence", "review", "content", "comment", "tweet", "message", "document"),
    *("utterance", "question", "phrase", "body", "headline", "description", "email", "sms"),
    *("post", "query", "paragraph", "review_text", "comment_text", "reviewtext", "title"),
)
LABEL_NAMES = (
    *("label", "labels", "class", "category", "target", "sentiment", "topic", "intent"),
    *("polarity", "emotion", "genre", "language", "author", "rating", "stars", "type", "y"),
)
SOURCE_NAMES = ("source", "src", "input", "text")
TARGET_NAMES = ("target", "tgt", "trg", "output", "translation")
