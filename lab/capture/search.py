"""A search index: Xapian, asked by several readers while one process indexes.

For: one application. Must never know: how a trace is recorded. Words of documents and queries
follow Zipf's law; a document that changes is one that came in of late, as in a store of messages.
Units: KiB in settings. Needs python3-xapian.
"""

from __future__ import annotations

import importlib
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from application import Application, Zipf

COMMITTED_AT_LOAD = 4000
SHOWN = 10


@dataclass
class Search(Application):
    """Queries of two or three words, and batches of documents that are indexed and committed."""

    name = "search"
    documents: int = 26_000
    words: int = 90
    body_kb: float = 5.0
    vocabulary: int = 50_000
    alpha: float = 0.9
    queried_alpha: float = 0.6
    readers: int = 4
    batch: int = 30
    replaced: float = 0.6

    @property
    def path(self) -> str:
        """Folder of the index."""
        return str(self.data / "index")

    def add(self, xapian: Any, drawn: list[int], rng: random.Random) -> Any:
        """Return a document of these words."""
        document = xapian.Document()
        for place, word in enumerate(drawn):
            document.add_posting(f"w{word}", place)
        document.set_data(rng.randbytes(int(self.body_kb * 1024 * rng.uniform(0.3, 1.7))))
        return document

    def prepare(self) -> None:
        """Index all documents."""
        xapian = importlib.import_module("xapian")
        database = xapian.WritableDatabase(self.path, xapian.DB_CREATE_OR_OVERWRITE)
        rng, numbers = random.Random(self.place.seed), np.random.default_rng(self.place.seed)
        popular = Zipf(self.vocabulary, self.alpha, self.place.seed)
        for number in range(self.documents):
            drawn = popular.draws(numbers, self.words).tolist()
            database.add_document(self.add(xapian, drawn, rng))
            if number % COMMITTED_AT_LOAD == 0:
                database.commit()
        database.close()

    def run(self) -> None:
        """Index in one process, ask in the others."""
        self.fork(1 + self.readers, self.work)

    def work(self, number: int, rng: random.Random) -> None:
        """Index or ask until the time is up."""
        xapian = importlib.import_module("xapian")
        if number == 0:
            self.index(xapian, rng)
        else:
            self.ask(xapian, rng)

    def index(self, xapian: Any, rng: random.Random) -> None:
        """Add and replace documents, batch by batch; each commit is synced."""
        database = xapian.WritableDatabase(self.path, xapian.DB_OPEN)
        numbers = np.random.default_rng(self.place.seed + 1)
        popular = Zipf(self.vocabulary, self.alpha, self.place.seed)
        while self.left() > 0:
            for _ in range(self.batch):
                document = self.add(xapian, popular.draws(numbers, self.words).tolist(), rng)
                last = database.get_lastdocid()
                age = int(rng.expovariate(5.0 / last))
                if rng.random() < self.replaced and age < last:
                    database.replace_document(last - age, document)
                else:
                    database.add_document(document)
            database.commit()
        database.close()

    def ask(self, xapian: Any, rng: random.Random) -> None:
        """Ask, and read the documents that are shown."""
        database = xapian.Database(self.path)
        popular = Zipf(self.vocabulary, self.queried_alpha, self.place.seed)
        kinds = (xapian.Query.OP_AND, xapian.Query.OP_OR)
        while self.left() > 0:
            words = [f"w{popular.draw(rng)}" for _ in range(rng.choice((2, 2, 3)))]
            try:
                enquire = xapian.Enquire(database)
                enquire.set_query(xapian.Query(rng.choice(kinds), words))
                for match in enquire.get_mset(0, SHOWN):
                    match.document.get_data()
            except xapian.DatabaseModifiedError:
                # Two commits later the blocks of this revision may be used again.
                database.reopen()
