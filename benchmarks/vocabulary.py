"""Words for `transforms.py`: synonyms, words that carry no story, and the words of other stories."""

from __future__ import annotations

from typing import Final

_SYNONYMS: Final = """
the:this every:each exactly:precisely find:determine compute:work_out calculate:work_out
return:give given:provided number:count integer:whole_number must:has_to should:ought_to may:might
single:lone final:concluding answer:reply output:result format:form contains:holds
consists:is_made represents:stands_for denotes:means such:so where:in_which between:from_among
all:every_one_of each:every least:smallest maximum:greatest minimum:least largest:biggest
total:overall following:next above:foregoing also:too only:just some:a_few many:several
begin:start start:begin end:finish goal:aim cost:price pays:earns pay:earn first:earliest
last:final choose:select pick:select move:shift moves:shifts wrong:mistaken right:correct
correct:right possible:feasible different:distinct distinct:different large:big small:little
new:fresh old:former before:ahead_of after:following then:afterwards because:since so:hence
use:employ using:with make:build made:built get:obtain take:grab gives:yields give:yield
shown:displayed show:display know:understand tells:says tell:inform about:concerning near:close_to
inside:within outside:beyond both:the_two nothing:naught never:at_no_time always:at_all_times
equal:identical same:identical value:quantity values:quantities order:sequence positive:above-zero
sum:total edges:links edge:link vertices:nodes vertex:node sequence:series array:list subset:part
pair:couple pairs:couples
"""
SYNONYMS: Final[dict[str, str]] = {
    before: after.replace("_", " ")
    for before, after in (pair.split(":") for pair in _SYNONYMS.split())
}
"""A word and what can be said instead. None announces commands, so what reads an observation still finds them."""

_PLAIN: Final = """
a about above after again against all also always an and any are as at back be because been before
being below between both but by can cannot could did do does done down each either else end ends
ended enough equal even ever every exactly few first for found from full gave get give given gives
go goal goes had half has have he hence her here him his how however if in inside instead into is
it its just last least left less like long made make makes many may me means more most much must
need needed needs neither never new next no none nor not nothing now number numbers of off old on
once one ones only onto or other others otherwise our out outside over own pay pays per put rather
right same say says second see seen set sets several shall she should show shown since single so
some still such sum take takes tell tells than that the their them then there these they thing
things third this those though three through thus time times to together told too total toward
twice two under unless until up upon use used using very was way we well were what when where
whether which while who whole whom whose why will with within without would write wrong yes yet
you your zero commands command options option action actions moves move reply answer respond send
type enter choose pick turn turns hint seed level reward four five six seven eight nine ten
integer integers output format final correct value values order input string strings char int
float true false separated space spaces line lines comma commas print return example
"""
PLAIN: Final = frozenset(_PLAIN.split())
"""Words that carry no story: they stay as they are in every other one."""

_STORY: Final = """
harbor lantern meadow pebble orchard falcon cinder velvet thimble anvil copper willow saddle
quarry bellows ribbon turnip gable ferry sparrow mortar pulley cobble barley wicker trellis beacon
furnace heather kettle marble canvas cellar badger rudder chisel clover amber brook tunnel gravel
hamlet pewter cradle fennel goblet hatch ivory jasper kiln ladle mallet nettle otter parsley quill
raven sickle tallow urchin vessel walnut yarrow zither acorn basket candle drum ember flute garnet
helmet ingot jetty knot loom mill needle oar plank quartz rope sail tower umbrella vine wagon yoke
axle bridge chapel dune engine fjord grove heron island jungle kayak lagoon moss nest oasis pine
quiver reef summit thicket underpass valley waterfall yard zephyr attic bakery corner dairy estate
fountain gallery hostel inlet junction kitchen library market nursery observatory palace quay
railway stable theatre workshop abbot baker cooper dyer fisher glazier herald jester keeper lancer
mason nomad oracle painter ranger sailor tailor usher vicar weaver yeoman cherish brew carve
dredge embroider ferment graze hoist knead launch mend nudge ponder quench rinse stitch tether
unfurl varnish whittle polish harvest juggle salvage plough gather braid frost bronze crimson
hollow mellow nimble placid rugged serene tangled wistful brittle drowsy eager fragrant gentle
humble jagged lively misty
"""
STORY: Final = tuple(_STORY.split())
"""Words for another story. Where they do not suffice, two are put together."""
