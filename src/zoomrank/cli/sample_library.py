"""A sample library and its visitors, to try the service with.

Visitors ask with ambiguous words: "crane" may mean a bird, a machine, or one that is folded from paper. A good ranking
has something for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from zoomrank.documents import Collection
from zoomrank.users import Mixture, TreeNetwork, UserDistribution

Shelf = tuple[str, ...]  # categories, from the widest to the narrowest

# The titles of each section; the books of a shelf alternate between its two subjects.
_BOOKS: Mapping[str, Sequence[str]] = {
    section: titles.split("; ")
    for section, titles in {
        "Nature": "A Field Guide to {}; The Quiet Life of {}; {} Through the Year; "
        "A Morning With {}; Drawing {}; What {} Know",
        "Science": "{} Explained; How We Found Out About {}; The Strange Case of {}; "
        "{}: Forty Experiments; A Short History of {}; Questions About {}",
        "Computing": "{} From Scratch; {} on One Page; Better {}; "
        "The Patient Guide to {}; {} for Curious People; Mistakes We Made With {}",
        "Travel": "{} on Foot; Slow Trains to {}; {}: Maps and Notes; Ten Days in {}; A Winter in {}; Letters From {}",
        "Food": "{} at Home; A Year of {}; Simple {}; {}: The Old Ways; My Grandmother's {}; {} for a Crowd",
        "Music": "{}: First Lessons; Playing {} Together; The Joy of {}; "
        "{} by Ear; Great Evenings of {}; {}: A Practice Book",
        "Making": "{} in an Afternoon; The Workshop Book of {}; {} With Children; "
        "Thirty Patterns for {}; {}: Tools and Tricks; The Art of {}",
        "Engineering": "How {} Work; {}: Plans and Pictures; The People Who Built {}; "
        "Restoring {}; {} Taken Apart; A Century of {}",
        "History": "{}: A New History; Tales of {}; The World of {}; "
        "In Search of {}; {} in a Hundred Objects; The Last Days of {}",
        "Stories": "The House of {}; {} After Dark; A Pocketful of {}; "
        "{} and Other Stories; The Girl Who Loved {}; No More {}",
    }.items()
}

_SHELVES: Mapping[Shelf, tuple[str, str]] = {
    ("Nature", "Birds", "Cranes and storks"): ("Cranes", "White Storks"),
    ("Nature", "Birds", "Owls"): ("Barn Owls", "Owls"),
    ("Nature", "Birds", "Songbirds"): ("Nightingales", "Wrens"),
    ("Nature", "Mammals", "Big cats"): ("Jaguars", "Snow Leopards"),
    ("Nature", "Mammals", "Seals"): ("Grey Seals", "Sea Lions"),
    ("Nature", "Mammals", "Bats"): ("Bats", "Flying Foxes"),
    ("Nature", "Fish", "River fish"): ("Bass and Perch", "Trout"),
    ("Nature", "Fish", "Sharks"): ("Sharks", "Rays"),
    ("Nature", "Plants", "Trees"): ("Oaks", "Old Trees"),
    ("Nature", "Plants", "Herbs"): ("Mint", "Wild Herbs"),
    ("Science", "Astronomy", "Planets"): ("the Planet Mercury", "the Inner Planets"),
    ("Science", "Astronomy", "Stars"): ("Double Stars", "Dying Stars"),
    ("Science", "Chemistry", "Metals"): ("Quicksilver", "Heavy Metals"),
    ("Science", "Chemistry", "Colours"): ("Indigo", "Pigments"),
    ("Science", "Earth", "Volcanoes"): ("Volcanoes", "Lava"),
    ("Science", "Earth", "Minerals"): ("Crystals", "Cinnabar"),
    ("Computing", "Languages", "Java"): ("Java", "Java Threads"),
    ("Computing", "Languages", "Python"): ("Python", "Python Data Tools"),
    ("Computing", "Networks", "Web pages"): ("Web Pages", "Style Sheets"),
    ("Computing", "Networks", "Home networks"): ("Home Networks", "Backups"),
    ("Travel", "Asia", "Java and Bali"): ("Java and Bali", "the Spice Islands"),
    ("Travel", "Asia", "Japan"): ("Northern Japan", "Kyoto"),
    ("Travel", "Europe", "Alps"): ("the Alps", "the Dolomites"),
    ("Travel", "Europe", "Coasts"): ("the Baltic Coast", "the Hebrides"),
    ("Travel", "Americas", "Amazon"): ("the Amazon", "the Pantanal"),
    ("Travel", "Americas", "Mexico"): ("Yucatán", "Oaxaca"),
    ("Food", "Drinks", "Coffee"): ("Coffee", "Java Beans"),
    ("Food", "Drinks", "Tea"): ("Green Tea", "Mint Tea"),
    ("Food", "Baking", "Bread"): ("Rye Bread", "Sourdough"),
    ("Food", "Baking", "Pies"): ("Apple Pies", "Pastries"),
    ("Food", "From the sea", "Sea bass and bream"): ("Sea Bass", "Bream"),
    ("Food", "From the sea", "Shellfish"): ("Mussels", "Crab"),
    ("Music", "Strings", "Bass guitar"): ("Bass Guitar", "Slap Bass"),
    ("Music", "Strings", "Violin"): ("Violin", "Fiddle Tunes"),
    ("Music", "Voices", "Choirs"): ("Choir Music", "Bass and Tenor Parts"),
    ("Music", "Keys", "Piano"): ("Piano", "Ragtime"),
    ("Making", "Paper", "Origami"): ("Paper Cranes", "Origami"),
    ("Making", "Paper", "Bookbinding"): ("Bookbinding", "Small Notebooks"),
    ("Making", "Wood", "Carving"): ("Spoon Carving", "Whittling"),
    ("Making", "Wood", "Boats"): ("Model Boats", "Canoes"),
    ("Making", "Textiles", "Knitting"): ("Knitting", "Warm Socks"),
    ("Making", "Textiles", "Quilts"): ("Quilts", "Patchwork"),
    ("Engineering", "Building", "Lifting machines"): ("Tower Cranes", "Harbour Cranes"),
    ("Engineering", "Building", "Bridges"): ("Bridges", "Aqueducts"),
    ("Engineering", "Vehicles", "Sports cars"): ("Jaguar Sports Cars", "Roadsters"),
    ("Engineering", "Vehicles", "Railways"): ("Steam Engines", "Night Trains"),
    ("History", "Ancient world", "Gods of Rome"): ("Mercury and Jupiter", "the Household Gods"),
    ("History", "Ancient world", "Egypt"): ("Egypt", "the Nile Kingdoms"),
    ("History", "Americas", "Maya"): ("the Maya", "the Jaguar Kings"),
    ("History", "Americas", "Inca"): ("the Inca", "the Mountain Roads"),
    ("History", "Seafaring", "Explorers"): ("the Northwest Passage", "the Spice Route"),
    ("Stories", "Crime", "Detectives"): ("Locked Rooms", "Inspectors"),
    ("Stories", "Crime", "Thieves"): ("Honest Thieves", "Forgers"),
    ("Stories", "Strange", "Ghosts"): ("Ghosts", "Empty Houses"),
    ("Stories", "Strange", "Space"): ("Small Moons", "Silent Ships"),
    ("Stories", "For children", "Animals"): ("Foxes", "Brave Mice"),
}

# Queries, and the shares of their visitors who want each shelf.
_SHELF_NAMED = {shelf[-1]: shelf for shelf in _SHELVES}
TASTES: Mapping[str, Mapping[Shelf, float]] = {
    query: {_SHELF_NAMED[name]: share for name, share in shares.items()}
    for query, shares in {
        "crane": {"Cranes and storks": 0.4, "Lifting machines": 0.35, "Origami": 0.25},
        "java": {"Java": 0.5, "Java and Bali": 0.3, "Coffee": 0.2},
        "mercury": {"Planets": 0.45, "Metals": 0.3, "Gods of Rome": 0.25},
        "bass": {"Bass guitar": 0.45, "River fish": 0.3, "Sea bass and bream": 0.25},
        "jaguar": {"Sports cars": 0.45, "Big cats": 0.35, "Maya": 0.2},
        "a rainy weekend": {"Detectives": 0.3, "Pies": 0.25, "Knitting": 0.2, "Piano": 0.15, "Alps": 0.1},
    }.items()
}

_LIKED = (0.01, 0.04, 0.2, 0.85)  # probability that a book is liked, by the number of categories it shares with a taste
_WORSE = 0.06  # each further book of a shelf is liked a little less often than the one before it


def library() -> Collection:
    """Return the books of the library, by their shelves.

    >>> library()
    Collection(336 documents, 432 nodes, depth 4)
    """
    paths, titles = {}, {}
    for shelf, title in _books():
        name = title.lower().replace("'", "").replace(":", "").replace(" ", "-")
        paths[name], titles[name] = shelf, title
    return Collection.from_taxonomy(paths, titles=titles)


def visitors(collection: Collection) -> dict[str, UserDistribution]:
    """Return the visitors of each query."""
    tree = collection.tree
    shelf_of = {title: shelf for shelf, title in _books()}
    place_of: dict[str, int] = {}  # position of a book on its shelf
    for shelf in _SHELVES:
        place_of |= {title: place for place, title in enumerate(_titles(shelf))}

    def liked(taste: Shelf, title: str) -> float:
        shared = 0
        while shared < len(taste) and taste[shared] == shelf_of[title][shared]:
            shared += 1
        return _LIKED[shared] * (1 - _WORSE * place_of[title])

    return {
        query: Mixture(
            [
                TreeNetwork(tree, [liked(taste, document.title) for document in collection], beyond_theory=True)
                for taste in tastes
            ],
            list(tastes.values()),
        )
        for query, tastes in TASTES.items()
    }


def _books() -> Iterator[tuple[Shelf, str]]:
    return ((shelf, title) for shelf in _SHELVES for title in _titles(shelf))


def _titles(shelf: Shelf) -> list[str]:
    subjects = _SHELVES[shelf]
    titles = [kind.format(subjects[place % 2]) for place, kind in enumerate(_BOOKS[shelf[0]])]
    return [title[0].upper() + title[1:] for title in titles]
