"""The words of the small grammar: what they mean in French, and what goes with what.

The tables choose company for every word, so that a sentence reads plausibly: a noun
names the adjectives that suit it, a verb the subjects and objects that it takes, as
kinds (person, animal, thing, mass, sound; "being" is the first two) or as single
nouns. Words are lower-cased and spelled as `tokenize` leaves them; every French h here
is mute.

Eight words are nouns and verbs alike: *watch, drink, cook, guard, plant, call*, in
both their forms, and *water* and *fish*. Only their neighbors tell which.

This module knows no order of words and no rule of agreement.
"""

from typing import NamedTuple

# English singular and plural; French singular and plural; gender; kind; how often it is
# used where another would do, so that both readings of a homograph are; adjectives. A
# mass has no plural and takes no "a"; of fish the plural is left out.
_NOUNS = """
man men        | homme hommes         | m | person | 1   | old happy tired
woman women    | femme femmes         | f | person | 2   | old happy tired
boy boys       | garçon garçons       | m | person | 1   | small happy tired
girl girls     | fille filles         | f | person | 2   | small happy tired
cook cooks     | cuisinier cuisiniers | m | person | 1   | old happy tired
guard guards   | gardien gardiens     | m | person | 1   | old happy tired
cat cats       | chat chats           | m | animal | 1   | small old black white tired
dog dogs       | chien chiens         | m | animal | 1   | small big old black tired
bird birds     | oiseau oiseaux       | m | animal | 1   | small beautiful black white
mouse mice     | souris souris        | f | animal | 2   | small black white tired
apple apples   | pomme pommes         | f | thing  | 1   | small red
orange oranges | orange oranges       | f | thing  | 1   | small cold
fish           | poisson              | m | thing  | 1.5 | small beautiful cold
rice           | riz                  | m | mass   | 1   | white cold
drink drinks   | boisson boissons     | f | thing  | 3   | cold
watch watches  | montre montres       | f | thing  | 3   | old beautiful red black
house houses   | maison maisons       | f | thing  | 1.5 | big old white red cold
garden gardens | jardin jardins       | m | thing  | 1   | small big beautiful
tree trees     | arbre arbres         | m | thing  | 1   | big old beautiful
plant plants   | plante plantes       | f | thing  | 2   | small big beautiful
flower flowers | fleur fleurs         | f | thing  | 1   | small beautiful red white
water          | eau                  | f | mass   | 1   | cold
milk           | lait                 | m | mass   | 1   | cold
call calls     | appel appels         | m | sound  | 5   |
"""

# French masculine, the same before a vowel, feminine; both plurals; its place; what it
# tells of.
_ADJECTIVES = """
small     | petit petit petite       | petits petites     | before | quality
big       | grand grand grande       | grands grandes     | before | quality
old       | vieux vieil vieille      | vieux vieilles     | before | quality
beautiful | beau bel belle           | beaux belles       | before | quality
red       | rouge rouge rouge        | rouges rouges      | after  | quality
black     | noir noir noire          | noirs noires       | after  | quality
white     | blanc blanc blanche      | blancs blanches    | after  | quality
cold      | froid froid froide       | froids froides     | after  | state
happy     | heureux heureux heureuse | heureux heureuses  | after  | state
tired     | fatigué fatigué fatiguée | fatigués fatiguées | after  | state
"""

# English with they and she; French with je, elle, nous, elles; how often; subjects;
# objects, after "a" if they may be indefinite: "a bird", negated "pas d'oiseau".
_VERBS = """
are is | suis est sommes sont | 2.2 | being thing mass |
see sees | vois voit voyons voient | 1.5 | being | a being thing
watch watches | regarde regarde regardons regardent | 1 | being | being fish
love loves | aime aime aimons aiment | 1 | being | being thing mass
hear hears | entends entend entendons entendent | 1.5 | being | a being sound
eat eats | mange mange mangeons mangent | 1 | being | a apple orange fish rice
drink drinks | bois boit buvons boivent | 1 | being | water milk
buy buys | achète achète achetons achètent | 1.5 | person | a dog cat thing milk rice
guard guards | garde garde gardons gardent | 1 | person dog | house garden boy girl
call calls | appelle appelle appelons appellent | 1 | person | person dog cat
cook cooks | cuisine cuisine cuisinons cuisinent | 1 | person | fish rice
plant plants | plante plante plantons plantent | 1 | person | a tree flower
water waters | arrose arrose arrosons arrosent | 1 | person | plant flower tree garden
fish fishes | pêche pêche pêchons pêchent | 1 | person |
sleep sleeps | dors dort dormons dorment | 1 | being |
sing sings | chante chante chantons chantent | 0.8 | person bird |
"""

# English singular and plural; French masculine, feminine, plural; how often it is used.
_DETERMINERS = """
the the    | le la les    | 5
a          | un une       | 3
this these | ce cette ces | 2
my my      | mon ma mes   | 1
his his    | son sa ses   | 1
her her    | son sa ses   | 1
"""

# (person, plural, French gender, human): English and French as subject, as object.
PRONOUNS = {
    (1, False, "m", True): ("i", "je", "me", "me"),
    (1, True, "m", True): ("we", "nous", "us", "nous"),
    (3, False, "m", True): ("he", "il", "him", "le"),
    (3, False, "f", True): ("she", "elle", "her", "la"),
    (3, False, "m", False): ("it", "il", "it", "le"),
    (3, False, "f", False): ("it", "elle", "it", "la"),
    (3, True, "m", True): ("they", "ils", "them", "les"),
    (3, True, "f", True): ("they", "elles", "them", "les"),
    (3, True, "m", False): ("they", "ils", "them", "les"),
    (3, True, "f", False): ("they", "elles", "them", "les"),
}

# English: its part of speech, French.
CONJUNCTIONS = {
    "and": ("CCONJ", "et"),
    "but": ("CCONJ", "mais"),
    "because": ("SCONJ", "parce que"),
    "while": ("SCONJ", "pendant que"),
    "when": ("SCONJ", "quand"),
}
NEGATIONS = {"not": ("PART", "pas"), "never": ("ADV", "jamais")}


class Noun(NamedTuple):
    """A noun, singular and plural ("" where it has none) in both languages."""

    english: tuple[str, str]
    french: tuple[str, str]
    gender: str  # "m" or "f"
    kind: str
    weight: float
    adjectives: tuple[str, ...]


class Adjective(NamedTuple):
    """An adjective with its French forms by (gender, plural)."""

    french: dict[tuple[str, bool], str]
    before_vowel: str  # masculine singular before a vowel
    before: bool  # stands before its noun in French
    passing: bool  # a state or a mood, no lasting quality


class Verb(NamedTuple):
    """A verb with its French forms by (person, plural), and what it goes with."""

    english: tuple[str, str]  # with they, with she
    french: dict[tuple[int, bool], str]
    weight: float
    subjects: tuple[str, ...]
    objects: tuple[str, ...]  # none: it takes no object


class Determiner(NamedTuple):
    """A determiner: English by number, French masculine, feminine and plural."""

    english: tuple[str, str]
    french: tuple[str, str, str]
    weight: float


def _rows(table):
    """Read a table: the name of each row, and its cells as tuples of words."""
    for line in table.strip().split("\n"):
        cells = [tuple(cell.split()) for cell in line.split("|")]
        yield (cells[0][0], *cells)


def _two(words):
    return (*words, "")[:2]


def _verb(english, french, weight, subjects, objects):
    persons = ((1, False), (3, False), (1, True), (3, True))
    french = dict(zip(persons, french, strict=True))
    return Verb(english, french, float(*weight), subjects, objects)


def _adjective(singular, plural, place, tells):
    masculine, before_vowel, feminine = singular
    keys = (("m", False), ("f", False), ("m", True), ("f", True))
    french = dict(zip(keys, (masculine, feminine, *plural), strict=True))
    return Adjective(french, before_vowel, place == ("before",), tells == ("state",))


NOUNS = {
    name: Noun(_two(english), _two(french), *gender, *kind, float(*weight), adjectives)
    for name, english, french, gender, kind, weight, adjectives in _rows(_NOUNS)
}
ADJECTIVES = {name: _adjective(*cells) for name, _, *cells in _rows(_ADJECTIVES)}
VERBS = {
    name: _verb(*cells)
    for name, *cells in _rows(_VERBS.replace("being", "person animal"))
}
DETERMINERS = {
    name: Determiner(_two(english), (*french, "")[:3], float(*weight))
    for name, english, french, weight in _rows(_DETERMINERS)
}
