"""Tables of a ledger's file."""

from __future__ import annotations

TABLES = """
CREATE TABLE IF NOT EXISTS log (
  number INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
  previous TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS details (hash TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS uses (approval TEXT PRIMARY KEY, used INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS revoked (approval TEXT PRIMARY KEY, time REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS spent (
  data_set TEXT NOT NULL, coordinator TEXT NOT NULL, epsilon INTEGER NOT NULL,
  delta INTEGER NOT NULL, PRIMARY KEY (data_set, coordinator)
) STRICT;
CREATE TABLE IF NOT EXISTS tried (
  data_set TEXT NOT NULL, party TEXT NOT NULL, day TEXT NOT NULL, keys INTEGER NOT NULL,
  PRIMARY KEY (data_set, party)
) STRICT;
CREATE TABLE IF NOT EXISTS heads (
  peer TEXT PRIMARY KEY, number INTEGER NOT NULL, hash TEXT NOT NULL, time REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS rests (
  coordinator TEXT NOT NULL, run TEXT NOT NULL, approval TEXT NOT NULL,
  PRIMARY KEY (coordinator, run, approval)
) STRICT;
CREATE INDEX IF NOT EXISTS rests_by_approval ON rests (approval);
CREATE TABLE IF NOT EXISTS stopped (
  coordinator TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY (coordinator, run)
) STRICT;
CREATE TABLE IF NOT EXISTS lineage (
  coordinator TEXT NOT NULL, run TEXT NOT NULL, source TEXT NOT NULL,
  PRIMARY KEY (coordinator, run, source)
) STRICT;
CREATE INDEX IF NOT EXISTS lineage_by_source ON lineage (coordinator, source);
CREATE TABLE IF NOT EXISTS partners (
  coordinator TEXT NOT NULL, run TEXT NOT NULL, party TEXT NOT NULL, notified INTEGER NOT NULL,
  PRIMARY KEY (coordinator, run, party)
) STRICT;
CREATE TABLE IF NOT EXISTS paused (coordinator TEXT PRIMARY KEY, time REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS chains (
  peer TEXT PRIMARY KEY, number INTEGER NOT NULL, hashes BLOB NOT NULL, seal TEXT NOT NULL,
  time REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS alarms (
  log TEXT NOT NULL, party TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY (log, party)
) STRICT;
CREATE TABLE IF NOT EXISTS recorded (subject TEXT PRIMARY KEY, digest TEXT NOT NULL) STRICT;
"""
