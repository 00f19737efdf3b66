"""Part a text into sentences, by rules: the sentences, joined, are the text.

A sentence ends behind ". ! ? … ؟ ۔" and the quotes and brackets that close there, where white space
follows; behind "。 ！ ？ ｡" wherever they stand; and where two line ends follow each other. But it
goes on

- where the next word begins in lower case (“Why?” he asked), and inside a number (3.14);
- behind an initial (J. Smith), and behind what stands before names and numbers (Dr., e.g., No.);
- behind other abbreviations (p.m., etc.) and numbers, unless a capital letter follows;
- behind capitals with full stops, unless a word follows that begins sentences and no names: "the
  U.S. Army" is a name, "in the U.S. The army" is parted. "In the U.S. Smith won" is missed.
"""

import re

MAY_END = """
    mr mrs ms dr prof sr jr st mt gen col lt sgt capt cmdr adm maj rev hon gov sen rep pres
    dept univ assn bros inc ltd co corp vs etc al cf ca approx est fig figs eq eqs no nos vol vols
    pp ed eds ch sec art op cit ibid viz jan feb mar apr jun jul aug sep sept oct nov dec
    mon tue tues wed thu thur thurs fri sat sun a.m p.m e.g i.e u.s u.k u.n d.c ph.d b.a m.a
    z.b d.h u.a bzw usw ca nr str hr fr evtl ggf vgl mme mlle m
"""
GO_ON = """
    mr mrs ms dr prof st mt gen col lt sgt capt cmdr adm maj rev hon gov sen rep pres hr fr mme mlle
    vs cf fig figs eq eqs no nos vol vols pp ed eds ch sec art e.g i.e z.b d.h nr vgl ca m
"""
BEGIN = """
    the a an this that these those there here it he she we they i you who what when where why how
    which his her its our their my your and but or so yet if as at by for from in on to with after
    before because although while since then now not no all some many most each one both however
"""
ABBREVIATIONS = frozenset(MAY_END.split())
BEFORE_NAMES = frozenset(GO_ON.split())  # though what follows begins with a capital letter
BEGINNINGS = frozenset(BEGIN.split())  # no names begin with them
INITIALISM = re.compile(r"[A-Z](\.[A-Z])+")
CLOSING = "\"'”’»)]}›"
END = re.compile(
    rf"(?P<wide>[。！？｡]+[{re.escape(CLOSING)}」』）】]*\s*)"
    rf"|(?<![.!?…؟۔])(?P<mark>[.!?…؟۔]+)[{re.escape(CLOSING)}]*(?P<space>\s+)"
    r"|(?P<gap>\n[^\S\n]*\n\s*)"
)
WORD_BEFORE = re.compile(r"[^\s(\[{\"'“‘«„]*\Z")
WORD_AFTER = re.compile(r"[\"'“‘«„(\[{¿¡—–-]*([^\W\d_]{1,40}|.?)", re.DOTALL)
LONGEST = 40  # characters of a word that is looked at


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it; none is empty."""
    found, start = [], 0
    for end in END.finditer(text):
        if end.end() > start and _ends(text, start, end):
            found.append(text[start : end.end()])
            start = end.end()
    return [*found, text[start:]] if start < len(text) else found


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether a sentence ends with this match."""
    if end["mark"] is None or end["space"].count("\n") > 1:
        return bool(end["wide"] or text[start : end.start()].strip())
    match = WORD_AFTER.match(text, end.end())
    follows = match[1] if match else ""
    if follows[:1].islower() or end["mark"] != ".":
        return not follows[:1].islower()
    word = WORD_BEFORE.search(text[max(start, end.start() - LONGEST) : end.start()])
    return not _goes_on(word[0] if word else "", follows)


def _goes_on(word: str, follows: str) -> bool:
    """Whether the full stop behind a word belongs to it, and the sentence goes on."""
    plain = word.lower()
    if plain in BEFORE_NAMES or (len(word) == 1 and word.isupper() and word != "I"):
        return True
    if INITIALISM.fullmatch(word) and follows.lower() not in BEGINNINGS:
        return bool(follows)
    may_end = plain in ABBREVIATIONS or "." in plain or plain.isdigit()
    return may_end and not follows[:1].isupper()
