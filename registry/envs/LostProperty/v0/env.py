"""Mind the lost property office of a small railway, for a traveller who asks one thing after the other.

What was found lies on the shelves under tags. A traveller describes her thing by its colour and by
what is in it; others of its kind share the one or the other, and only one has both. It is put aside
under her name, its storage is booked, and it travels by a train that has a parcel van. Storage costs
the tariff of the kind for each day since the thing came in, less the days that are free. The book of
claims says what is put aside for whom. The office tells what is missing when something cannot be done
yet, but the cashier has no patience: the third wrong sum closes the till for the day.
"""

import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

KINDS = ("camera", "hat", "satchel", "suitcase", "umbrella", "violin")
COLOURS = ("black", "brown", "green", "grey", "red", "white")
INSIDE = (
    "a brass key",
    "a chess clock",
    "a concert ticket",
    "a fern between two sheets of paper",
    "a letter in Finnish",
    "a map of the harbour",
    "half a postcard",
    "three marbles",
)
FIRST = ("Ada", "Elin", "Ida", "Karin", "Lotte", "Runa")
BROTHERS = ("Arvid", "Bo", "Jon", "Nils", "Otto", "Sven")
FAMILIES = ("Berg", "Dahl", "Falk", "Holm", "Lind", "Nyman")
STATIONS = ("Alvik", "Borgholm", "Falun", "Lund", "Mora", "Nora", "Ystad")
TILL_ERRORS = 3


class LostPropertyEnv(ToolEnv):
    max_turns = 24

    def setup(self, seed: int) -> str:
        self.rng = random.Random(seed)
        rng = self.rng
        family = rng.choice(FAMILIES)
        self.owner = f"{rng.choice(FIRST)} {family}"
        self.brother = f"{rng.choice(BROTHERS)} {family}"
        self.today = rng.randint(20, 28)
        self.kinds = rng.sample(KINDS, 3)  # what she lost, what he has found, what he still misses
        self.tariffs = {
            kind: {"pence a day": rng.randint(3, 9), "free days": rng.randint(1, 4)}
            for kind in KINDS
        }
        self.things = {}
        self._fill_shelves()
        self._write_timetable()
        self.till_errors = 0
        lost, found, missed = self.kinds
        thing = self.things[self.lost_tag]
        self.instruct(
            f"I am {self.owner}. I have lost my {lost}: it is {thing['colour']}, with "
            f"{thing['inside']} in it. Please put it aside under my name, and nothing else.",
            lambda: self._held_for(self.owner) == [self.lost_tag],
        )
        self.instruct(
            f"Thank you. Book the storage on my account and send it to me at {self.station}.",
            lambda: self.things[self.lost_tag].get("sent to") == self.station,
        )
        self.instruct(
            f"My brother {self.brother.split()[0]} has found his {found} at home after all. Take "
            f"what you put aside for it back to the shelf. He still misses his {missed}.",
            lambda: self._held_for(self.brother) == [self.missed_tag],
        )
        self.instruct(
            f"How many pence does the storage of his {missed} come to today?",
            answer=self._due(self.missed_tag),
        )
        return (
            f"You mind the lost property office. Today is day {self.today} of the month. "
            "A traveller stands at the counter and asks one thing after the other."
        )

    def _fill_shelves(self) -> None:
        """Four things of the kind she lost, three of each of the others."""
        rng = self.rng
        lost, found, missed = self.kinds
        colours, contents = rng.sample(COLOURS, 3), rng.sample(INSIDE, 3)
        looks = [(0, 0), (0, 1), (1, 0), (2, 2)]  # only the first has both of hers
        rows = [(lost, colours[colour], contents[content]) for colour, content in looks]
        for kind in (found, missed):
            rows += [(kind, rng.choice(COLOURS), rng.choice(INSIDE)) for _ in range(3)]
        tags = [f"T{number}" for number in rng.sample(range(100, 1000), len(rows))]
        for tag, (kind, colour, inside) in sorted(zip(tags, rows, strict=True)):
            day = rng.randint(1, self.today - 6)
            self.things[tag] = {"kind": kind, "colour": colour, "inside": inside, "came in": day}
        self.lost_tag, self.found_tag, self.missed_tag = tags[0], tags[4], tags[7]
        self.claims = {self.found_tag: self.brother, self.missed_tag: self.brother}
        self.booked = []

    def _write_timetable(self) -> None:
        """Three trains for each station, one of them with a parcel van."""
        rng = self.rng
        self.station = rng.choice(STATIONS)
        self.trains = {}
        numbers = rng.sample(range(200, 900), 3 * len(STATIONS))
        for place, number in enumerate(numbers):
            self.trains[number] = {"to": STATIONS[place // 3], "van": "none"}
        for place in range(len(STATIONS)):
            parcels, mail = rng.sample(numbers[3 * place : 3 * place + 3], 2)
            self.trains[parcels]["van"] = "parcels"
            self.trains[mail]["van"] = "mail"

    def _held_for(self, name: str) -> list:
        return sorted(tag for tag, holder in self.claims.items() if holder == name)

    def _due(self, tag: str) -> int:
        thing = self.things[tag]
        tariff = self.tariffs[thing["kind"]]
        return tariff["pence a day"] * (self.today - thing["came in"] - tariff["free days"])

    def _thing(self, tag: str) -> dict:
        if tag not in self.things:
            raise ToolError(f"no thing has the tag {tag[:20]!r}; a tag looks like T123")
        if "sent to" in self.things[tag]:
            raise ToolError(f"{tag} has left with the train")
        return self.things[tag]

    def tool_search(
        self, kind: Literal["camera", "hat", "satchel", "suitcase", "umbrella", "violin"]
    ) -> list:
        """List the tags of all things of a kind that lie on the shelves or are put aside."""
        here = [tag for tag, thing in self.things.items() if "sent to" not in thing]
        return [tag for tag in here if self.things[tag]["kind"] == kind]

    def tool_inspect(self, tag: str) -> dict:
        """Look at one thing: its kind, its colour, what is in it, and the day on which it came in."""
        return self._thing(tag)

    def tool_put_aside(self, tag: str, name: str) -> str:
        """Put a thing aside for a traveller.

        Args:
            tag: The tag of the thing.
            name: First name and family name of the traveller.
        """
        self._thing(tag)
        if tag in self.claims:
            raise ToolError(f"{tag} is put aside for somebody already")
        self.claims[tag] = name
        return f"{tag} is put aside for {name}."

    def tool_put_back(self, tag: str) -> str:
        """Take a thing that was put aside back to the shelf."""
        self._thing(tag)
        if self.claims.pop(tag, None) is None:
            raise ToolError(f"{tag} is not put aside")
        return f"{tag} lies on the shelf again."

    def tool_claims(self, name: str) -> list:
        """List the tags of what is put aside for a traveller, by first name and family name."""
        return self._held_for(name)

    def tool_tariff(
        self, kind: Literal["camera", "hat", "satchel", "suitcase", "umbrella", "violin"]
    ) -> dict:
        """Tell what storage of a kind costs a day, and how many days are free."""
        return self.tariffs[kind]

    def tool_book_storage(self, tag: str, pence: int) -> str:
        """Book the storage of a thing that is put aside. The third wrong sum closes the till for the day."""
        self._thing(tag)
        if self.till_errors == TILL_ERRORS:
            raise ToolError("the till is closed for the day")
        if tag not in self.claims:
            raise ToolError(f"{tag} must be put aside for somebody first")
        if pence != self._due(tag):
            self.till_errors += 1
            raise ToolError("the cashier shakes her head: that is not what the tariff asks for")
        self.booked.append(tag)
        return "The storage is booked."

    def tool_trains(
        self, station: Literal["Alvik", "Borgholm", "Falun", "Lund", "Mora", "Nora", "Ystad"]
    ) -> dict:
        """Look a station up in the timetable: the numbers of the trains to it, each with its van."""
        return {
            number: train["van"] for number, train in self.trains.items() if train["to"] == station
        }

    def tool_send(self, tag: str, train: int) -> str:
        """Send a thing that is put aside, with its storage booked, by a train with a parcel van."""
        thing = self._thing(tag)
        if tag not in self.claims:
            raise ToolError(f"{tag} must be put aside for somebody first")
        if tag not in self.booked:
            raise ToolError(f"the storage of {tag} is not booked")
        if train not in self.trains:
            raise ToolError(f"no train has the number {train}")
        if self.trains[train]["van"] != "parcels":
            raise ToolError(f"train {train} has no parcel van")
        thing["sent to"] = self.trains[train]["to"]
        return f"{tag} is on its way to {thing['sent to']}."

    def tool_announce(self, text: str) -> str:
        """Read something out over the loudspeakers of the station."""
        return f"The hall echoes {len(text.split())} words. A pigeon takes off."

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Inspect before you put aside, and do first what an error names."
        lost, found, missed = self.kinds
        if level == 2:
            return (
                f"There are four things like the {lost}, and no colour and no content alone tells "
                "which is hers. Storage is the pence a day times the days since it came in that are "
                "not free, and comes before sending. Of the trains only the one with a parcel van "
                "will do. The claims go by full names, and inspecting them tells the "
                f"{found} from the {missed}."
            )
        return (
            f"Hers is {self.lost_tag}, with {self._due(self.lost_tag)} pence of storage. Of her "
            f"brother's, {self.found_tag} goes back and {self.missed_tag} stays."
        )

    def solution(self) -> list[str]:
        lost, _found, missed = self.kinds
        to_station = self.tool_trains(self.station)
        train = next(number for number, van in to_station.items() if van == "parcels")
        return [
            self.call("search", kind=lost),
            self.call("inspect", tag=self.lost_tag),
            self.call("put_aside", tag=self.lost_tag, name=self.owner),
            self.call("tariff", kind=lost),
            self.call("book_storage", tag=self.lost_tag, pence=self._due(self.lost_tag)),
            self.call("trains", station=self.station),
            self.call("send", tag=self.lost_tag, train=train),
            self.call("claims", name=self.brother),
            self.call("inspect", tag=self.found_tag),
            self.call("put_back", tag=self.found_tag),
            self.call("inspect", tag=self.missed_tag),
            self.call("tariff", kind=missed),
            self.answer(self._due(self.missed_tag)),
        ]
