"""PostgreSQL under scans, joins, sorts and look-ups of a star schema.

For: one application. Must never know: how a trace is recorded. Units: seconds, rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from databases import Postgres

DAYS = 2400
TABLES = """
SELECT setseed({seed});
CREATE TABLE customer AS SELECT g AS ck, (random()*24)::int AS nation, random()*10000 AS bal,
 md5(g::text)||md5((g+1)::text) AS address FROM generate_series(1, {customers}) g;
CREATE TABLE part AS SELECT g AS pk, (random()*49)::int AS brand, (random()*149)::int AS kind,
 md5(g::text) AS name FROM generate_series(1, {parts}) g;
CREATE TABLE orders AS SELECT g AS ok, 1+(random()*({customers}-1))::int AS ck,
 date '1992-01-01'+(g::bigint*{days}/{orders})::int AS odate, (random()*4)::int AS prio,
 random()*100000 AS total, repeat(md5(g::text), 2) AS remark
 FROM generate_series(1, {orders}) g;
CREATE TABLE lineitem AS SELECT 1+(g/4) AS ok, 1+(random()*({parts}-1))::int AS pk,
 (random()*50)::int AS qty, random()*1000 AS price, random()*0.1 AS disc,
 date '1992-01-01'+(g::bigint*{days}/{rows})::int+(random()*60)::int AS sdate,
 (random()*6)::int AS mode, md5(g::text) AS remark FROM generate_series(1, {rows}) g;
CREATE INDEX ON customer(ck); CREATE INDEX ON part(pk);
CREATE INDEX ON orders(ok); CREATE INDEX ON orders(ck);
CREATE INDEX ON lineitem(ok); CREATE INDEX ON lineitem(pk);
ANALYZE;
"""
QUERIES = {
    "SELECT mode, sum(qty), sum(price*(1-disc)), count(*) FROM lineitem "
    "WHERE sdate < {day} GROUP BY mode": 2,
    "SELECT prio, count(*) FROM orders "
    "WHERE odate >= {day} AND odate < {day} + 90 GROUP BY prio": 1,
    "SELECT c.nation, sum(l.price) FROM customer c JOIN orders o USING (ck) "
    "JOIN lineitem l USING (ok) WHERE o.odate >= {day} AND o.odate < {day} + 365 "
    "GROUP BY 1 ORDER BY 2 DESC": 2,
    "SELECT sum(price*disc) FROM lineitem WHERE sdate BETWEEN {day} AND {day} + 30 AND qty < 24": 2,
    "SELECT p.brand, avg(l.qty) FROM part p JOIN lineitem l USING (pk) "
    "WHERE p.brand = {brand} GROUP BY 1": 2,
    "SELECT count(*) FROM (SELECT ok, price FROM lineitem WHERE mode = {mode} "
    "ORDER BY price DESC, ok) s": 1,
    "SELECT sum(l.price) FROM lineitem l WHERE l.pk BETWEEN {pk} AND {pk} + {span}": 8,
    "SELECT sum(l.price) FROM orders o JOIN lineitem l USING (ok) "
    "WHERE o.ck BETWEEN {ck} AND {ck} + {span}": 8,
    "SELECT ok, sum(qty) FROM lineitem GROUP BY ok HAVING sum(qty) > 190 "
    "ORDER BY 2 DESC LIMIT 100": 1,
}


@dataclass
class Dss(Postgres):
    """Streams of queries with random parameters."""

    name = "dss"
    rows: int = 3_000_000
    streams: int = 2
    work_mem: str = "4MB"

    def prepare(self) -> None:
        """Make the tables."""
        self.initialise()
        counts = {
            "customers": self.rows // 40,
            "parts": self.rows // 30,
            "orders": self.rows // 4,
        }
        fixed = {"seed": self.place.seed / 1000.0, "rows": self.rows, "days": DAYS}
        self.sql(TABLES.format(**fixed, **counts))
        self.sql("VACUUM")
        self.down()

    def query(self, rng: random.Random) -> str:
        """Return the next query."""
        chosen = {
            "day": f"date '1992-01-01' + {rng.randrange(DAYS - 100)}",
            "pk": rng.randrange(1, self.rows // 30),
            "ck": rng.randrange(1, self.rows // 40),
            "brand": rng.randrange(50),
            "mode": rng.randrange(7),
            "span": self.rows // 3000,
        }
        return rng.choices(list(QUERIES), list(QUERIES.values()))[0].format(**chosen)

    def run(self) -> None:
        """Query until the time is up."""
        self.up(f"work_mem={self.work_mem}", "max_parallel_workers_per_gather=1", "jit=off")

        def stream(_: int, rng: random.Random) -> None:
            while self.left() > 0:
                limit = f"SET statement_timeout='{max(self.left() + 5, 5):.0f}s'"
                self.sql(f"{limit}; {self.query(rng)}", check=False)

        try:
            self.fork(self.streams, stream)
        finally:
            self.down()
