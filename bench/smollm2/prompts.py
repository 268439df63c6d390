"""Writes what SmolLM2 is asked: ``train.jsonl`` for a recipe, ``held_out.jsonl`` for ``bench --prompts``.

    python bench/smollm2/prompts.py FOLDER

Everyday questions about a hundred and more things; no thing of the held-out ones stands in a training one.
"""

import itertools
import json
import random
import sys
from pathlib import Path

ASKED = (
    "What is {}?",
    "Explain {} to a child.",
    "Why is {} important?",
    "Give me three facts about {}.",
    "Write a short paragraph about {}.",
    "What are the uses of {}?",
    "How does {} work?",
    "Name two advantages and two disadvantages of {}.",
)
_THINGS = """
a prime number, gravity, photosynthesis, a volcano, the moon, rain, a magnet, electricity
a battery, sleep, the heart, a lung, a bridge, a bicycle, a clock, a compass, a telescope
a microscope, a thermometer, glass, steel, paper, ink, soap, salt, sugar, bread, cheese, butter
honey, tea, coffee, rice, wheat, cotton, wool, silk, a loom, a windmill, a dam, a canal, a harbour
a lighthouse, a train, an aeroplane, a balloon, a rocket, a satellite, radio, television
a telephone, a computer, a keyboard, a program, a loop in Python, a list in Python
a function in Python, recursion, sorting, a database, the internet, a web page, encryption
a password, a map, a library, a museum, a school, a hospital, a court, a parliament, a vote, a tax
a bank, money, a budget, insurance, a contract, trade, a market, a garden, a forest, a desert
a river, a lake, an ocean, a glacier, an island, a mountain, a valley, a storm, snow, wind
a cloud, a rainbow, an earthquake, a fossil, a dinosaur, a whale, a dolphin, a bee, a butterfly
an ant, a spider, a frog, a snake, an owl, a penguin, a horse, a dog, a cat, a cow, a fraction
a triangle, a circle, an angle, an equation, a graph, probability, an average, a percentage
multiplication, a poem, a novel, a play, a song, a piano, a violin, a drum, a painting
a sculpture, a photograph, a film, a recipe, exercise, swimming, running, chess, football
friendship, honesty, courage
"""
THINGS = _THINGS.strip().replace("\n", ", ").split(", ")
EVERY = 8
"""One thing in so many is held out."""


def questions(things: list[str]) -> list[str]:
    """Every question about every thing, shuffled with a fixed seed."""
    found = [asked.format(thing) for thing, asked in itertools.product(things, ASKED)]
    random.Random(0).shuffle(found)  # noqa: S311 - an order
    return found


def main(folder: Path) -> None:
    """Both files."""
    folder.mkdir(parents=True, exist_ok=True)
    training = [thing for number, thing in enumerate(THINGS) if number % EVERY]
    for name, key, things in (("train", "chat", training), ("held_out", "is_chat", THINGS[::EVERY])):
        lines = [json.dumps({"prompt": question, key: True}) + "\n" for question in questions(list(things))]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
