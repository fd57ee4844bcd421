"""What a designer is told about a skill, and ideas for it, which stand in where there is no corpus document.

The nine skills of games and the six of tool use are those of SPADE (arXiv 2608.19197); descriptions and ideas are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from spade_loop.errors import ConfigError
from synthgym.contract import TOOL_SKILLS
from synthgym.ids import did_you_mean

IDEAS_SHOWN: Final = 3
"""How many ideas a designer is shown without a document."""


@dataclass(frozen=True, slots=True)
class SkillGuide:
    """A skill in one sentence, and ideas for environments that exercise it."""

    summary: str
    ideas: tuple[str, ...]


GUIDES: Final[Mapping[str, SkillGuide]] = MappingProxyType(
    {
        "pattern-recognition": SkillGuide(
            "Find the rule behind what is shown, in numbers, signs or events, and use it on what comes next.",
            (
                "A loom repeats a hidden row of colours with one fault; find the fault and mend the cloth.",
                "Bells ring by two rules that overlap; strike the next bell before it would ring.",
                "Marked tiles open doors by a rule on their signs; each try shows which part of the rule was met.",
                "A signal lamp sends words in a code with a shifting key; answer three of them in the same code.",
                "Seeds sprout after a number of days that depends on shape and colour; plant for a given day.",
                "A gauge follows a cycle inside of a cycle; read it at chosen hours and forecast the last one.",
            ),
        ),
        "logical-deduction": SkillGuide(
            "Draw conclusions that must hold from rules and evidence, and act on them.",
            (
                "Guards of whom some always lie watch doors; question them, then pass three doors in a row.",
                "Guests sit by rules that are uncovered one by one; seat everybody without breaking any.",
                "A locked archive names who had which key when; find out whose statement cannot be true.",
                "Barrels carry labels that are all wrong; take samples and set every label right.",
                "A circuit of unknown gates has switches and lamps; test it, then name the gates.",
                "Tracks of animals in snow rule dens out; set up one camera a night until each den is known.",
            ),
        ),
        "strategic-planning": SkillGuide(
            "Plan several steps ahead with means that run short, and change the plan when things change.",
            (
                "An expedition lays depots of food before it can cross a desert that holds more than one load.",
                "A printer has three orders, two presses and too little ink; decide what runs when.",
                "A lighthouse keeper stocks up before storms whose strength is forecast, more or less.",
                "A town builds a bridge, a mill and a wall in the order that lets each pay for the next.",
                "A chess-like duel on a narrow board against an opponent whose habits show in the first moves.",
                "A gardener rotates crops over fields that tire; the last harvest must feed the feast.",
            ),
        ),
        "mathematical-reasoning": SkillGuide(
            "Turn a situation into quantities and equations, and work them out step by step.",
            (
                "Scales with unknown offsets weigh parcels; find the offsets, then pack a load of exact weight.",
                "Gears with hidden numbers of teeth turn a clock; set it to a given hour by turning one of them.",
                "A toll road charges by a formula of distance and axles; find it and arrive with nothing left.",
                "Vats mix acids of unknown strength; draw off samples until one has the strength that is ordered.",
                "A code lock shows remainders of its number; choose the divisors and then open it.",
                "Lots are auctioned where each bid raises the price by a law; buy all lots within the purse.",
            ),
        ),
        "spatial-reasoning": SkillGuide(
            "Keep places, directions and shapes in mind, and turn, fold or join them.",
            (
                "A cube with marked faces rolls over a board and must arrive with a given face up.",
                "A mole digs by compass in a garden seen only as what its nose touches; reach the three bulbs.",
                "Mirrors on a grid are turned until a beam meets every target and spares the powder.",
                "A sheet of paper is folded and punched by order; choose folds that give the wanted holes.",
                "Crates are pushed on a quay where they cannot be pulled, in fog that shows neighbours only.",
                "Two rooms are described by people who face different ways; put every chair where both agree.",
            ),
        ),
        "causal-inference": SkillGuide(
            "Find out what causes what, by changing one thing at a time, and tell it from what merely goes along.",
            (
                "Fish fall ill in some ponds; change feed, shade or inflow and find which of them it is.",
                "A machine has levers of which some only work together; find the pairs and run it backwards.",
                "A bakery's bread fails on some days; repeat the day with one thing changed and write the remedy.",
                "Lamps in a house flicker with the neighbours' habits; find the wire that ought not to be there.",
                "A spring dries up when one of several wells is used; find the well and the delay.",
                "Two remedies cure, one only appears to because the healthy take it; choose whom to give what.",
            ),
        ),
        "memory-recall": SkillGuide(
            "Keep what was seen before, and use it when it no longer can be seen.",
            (
                "A cloakroom hands out tickets once; give every coat back as the guests leave in another order.",
                "A tour through a museum is walked once by a guide; answer visitors by leading them to the piece.",
                "Cards lie face down and two are turned at a time; some are swapped in between, as announced.",
                "A waiter takes orders table by table and changes to them, then serves without a list.",
                "A parrot repeats phrases; one of each pair of sayings was said before by another parrot: which?",
                "A caravan tells the wells that it passed; find the way back, where signs only show numbers.",
            ),
        ),
        "optimisation": SkillGuide(
            "Find the best of many choices under limits, not just one that will do.",
            (
                "A courier with a small bag and a clock delivers what pays most; roads change by the hour.",
                "A furnace has three dials and a hidden best setting; each firing costs fuel and shows the yield.",
                "Beds of a nursery take plants that help or hinder their neighbours; plant for the largest yield.",
                "A crane loads a ship so that it floats level with as few lifts as can be.",
                "A radio mast reaches villages by height and place; cover all of them at the least cost.",
                "Shifts of a night watch are shared out so that nobody is tired and no gate is unwatched.",
            ),
        ),
        "language-understanding": SkillGuide(
            "Grasp what words mean in their context, and rewrite, sort or obey them.",
            (
                "A clerk's orders use words in a sense that the house rules define; carry the orders out.",
                "A letter in an invented tongue comes with translated pairs; build the sentence that is asked for.",
                "Telegrams leave words out; ask for at most two words each and wire the right shop.",
                "A judge hears statements with 'unless', 'only' and 'neither'; grant what follows, and no more.",
                "Riddles name things of a room; move the thing that is meant, though two fit at first sight.",
                "A censor strikes words by rules on their meaning; get the message through by rewording it.",
            ),
        ),
        "api-orchestration": SkillGuide(
            "Chain calls that change state, where what one call gives is what the next one takes.",
            (
                "An account gives a session, the session a quote, the quote a contract; each expires by the next.",
                "A parcel is announced, weighed, priced and paid, by codes that every step hands to the next.",
                "Rooms, speakers and invitations of a meeting are held first and confirmed only together.",
                "Photographs are imported, tagged and published; a published album can only take a tagged picture.",
                "A refund opens a case, the case asks for a check, the check frees the sum on one of two accounts.",
            ),
        ),
        "data-retrieval": SkillGuide(
            "Find what is needed by searching, reading and narrowing down, then act on just that.",
            (
                "Of several bookings under one name only one has the date and the size that the user recalls.",
                "Lists come in pages and names are spelled in two ways; find the supplier of a recalled part.",
                "The newest reading of a meter counts, but each of three registers holds another part of it.",
                "A contract refers to an annex, the annex to a table; the fee that applies stands only there.",
                "Search takes one word at a time; cross two searches to find the patient who is meant.",
            ),
        ),
        "state-modification": SkillGuide(
            "Make changes that depend on each other, in an order that keeps everything in a legal state.",
            (
                "Two guests swap rooms in a full house: one of them needs a place in between.",
                "Sums move between accounts with limits, so that none is ever overdrawn and all end as asked.",
                "A group is renamed, emptied and removed; members lose their rights with it unless moved first.",
                "Shelves have a capacity; restock so that every product stands in one place and nothing is lost.",
                "A price list changes by rules that build on each other; apply them without touching the frozen rows.",
            ),
        ),
        "error-recovery": SkillGuide(
            "Expect calls to fail: read the error, check the state, repair it, try again, or take another way.",
            (
                "A booking fails because the card is locked, which fails because an address is out of date.",
                "A device answers with codes that a manual explains, and each remedy has its own condition.",
                "A transfer is refused above a daily limit that is told only then; split it and keep the fee low.",
                "An upload is refused for its name, then for its size; rename and compress, and do not lose the first.",
                "A lock is held by a job that died; find out which, clear that one, and leave those that still run.",
            ),
        ),
        "tool-selection": SkillGuide(
            "Choose among tools that look alike the one that fits the state at hand.",
            (
                "Cancel, void and refund do almost the same: which one is right depends on how far the order is.",
                "Three ways to send a message differ in cost, reach and hours; each instruction allows only one.",
                "A door opens by badge, by code or by guard; the log tells which of them works at this hour.",
                "Archive, hide and delete: one can be undone, one keeps the links, one frees the name.",
                "A sensor can be reset, calibrated or replaced; its readings tell what is the matter.",
            ),
        ),
        "multi-step-workflows": SkillGuide(
            "Carry out ordered steps that depend on each other, from the first look to the last confirmation.",
            (
                "A new colleague needs an account, a desk and a badge, each with an approval of another office.",
                "A return is announced, labelled, received, checked and paid back, and one item takes another road.",
                "A trip is planned around a fixed meeting: outward flight, hotel, return, all within the budget.",
                "A release is built, tested, signed and put in place; a failed test sends it back by one step.",
                "A clinic admits, tests, refers and discharges; each step writes what the next one has to read.",
            ),
        ),
    }
)
"""By skill: first the nine of games, then the six of tool use."""


def summary(skill: str) -> str:
    """The skill in one sentence. `ConfigError` for a skill that there is not."""
    return _guide(skill).summary


def ideas(skill: str, k: int, rng: np.random.Generator) -> tuple[str, ...]:
    """`k` different ideas for the skill, drawn in random order; equal generators give equal ideas.

    `ConfigError` for a skill that there is not, and for a `k` below 1 or above the number of its ideas.
    """
    known = _guide(skill).ideas
    if not 1 <= k <= len(known):
        raise ConfigError(f"there are 1 to {len(known)} ideas to draw for {skill}, got k = {k}")
    return tuple(known[int(i)] for i in rng.permutation(len(known))[:k])


def grounding(document: str | None, skill: str, rng: np.random.Generator) -> str:
    """The part of a designer's prompt that says what to build on: the document, or a summary and ideas.

    Without a document (None, or nothing but spaces) `IDEAS_SHOWN` ideas are drawn; with one nothing is drawn, and `rng`
    is left as it was. `ConfigError` for a skill that there is not.
    """
    guide = _guide(skill)
    text = (document or "").strip()
    if not text:
        drawn = "\n".join(f"- {idea}" for idea in ideas(skill, IDEAS_SHOWN, rng))
        return (
            f"What the skill is: {guide.summary}\n"
            f"Take up one of these ideas, join two, or find a better one:\n{drawn}"
        )
    if skill in TOOL_SKILLS:
        # The task names the domain; a mechanism of another one would fight with it.
        start = "Borrow rules, conditions or vocabulary from this document where they fit, but never mention it:"
    else:
        start = "Ground the environment in a mechanism of this document, but never mention the document:"
    return f"{start}\n{text}"


def _guide(skill: str) -> SkillGuide:
    if skill not in GUIDES:
        near = did_you_mean(skill, GUIDES)
        raise ConfigError(f"unknown skill {skill!r}{near} (known: {', '.join(GUIDES)})")
    return GUIDES[skill]
