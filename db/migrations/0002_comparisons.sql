-- Schema version 2: what `compare`, `gate` and `pin` find, where a run came from, and who is at work on one.

-- === comparisons ======================================================================================================

-- Version 1 had no writer of comparisons. `log_ratio` is the estimate of ln(time of B / time of A), with its 95 %
-- interval; `delta` the relative change that counts as one; `p_value` that of no change beyond delta; `value_a`,
-- `value_b` the sides' values, in the metric's unit. `mode`: both sides measured in turn, or against what is stored.
-- `confirms`: uid of the comparison that this one repeats. `facts`: {"differing": […], "stop": …}.
ALTER TABLE comparison ADD COLUMN at TEXT;
ALTER TABLE comparison ADD COLUMN mode TEXT CHECK (mode IN ('interleaved', 'stored'));
ALTER TABLE comparison ADD COLUMN unit TEXT;
ALTER TABLE comparison ADD COLUMN value_a REAL;
ALTER TABLE comparison ADD COLUMN value_b REAL;
ALTER TABLE comparison ADD COLUMN launches INTEGER CHECK (launches >= 0);
ALTER TABLE comparison ADD COLUMN delta REAL CHECK (delta > 0);
ALTER TABLE comparison ADD COLUMN p_value REAL CHECK (p_value BETWEEN 0 AND 1);
ALTER TABLE comparison ADD COLUMN confirms TEXT;
ALTER TABLE comparison ADD COLUMN facts TEXT CHECK (facts IS NULL OR json_valid(facts));
CREATE INDEX comparison_by_run ON comparison (run_id);

-- A block is four bursts in the order that `order_of` names; blocks are counted apart in each launch, so the launch
-- joins the key. log_ratio = mean of ln(B) - mean of ln(A) of this block.
CREATE TABLE comparison_block_2 (
  comparison_id INTEGER NOT NULL REFERENCES comparison (id),
  launch        INTEGER NOT NULL,
  block         INTEGER NOT NULL,
  order_of      TEXT NOT NULL,  -- "ABBA"
  seconds_1     REAL,
  seconds_2     REAL,
  seconds_3     REAL,
  seconds_4     REAL,
  log_ratio     REAL NOT NULL,
  PRIMARY KEY (comparison_id, launch, block)
) STRICT, WITHOUT ROWID;
INSERT INTO comparison_block_2 (comparison_id, launch, block, order_of, log_ratio)
  SELECT comparison_id, 0, block, order_of, log_ratio FROM comparison_block;
DROP TABLE comparison_block;  -- its triggers go with it
ALTER TABLE comparison_block_2 RENAME TO comparison_block;

-- A comparison among the others of its sweep, written when the sweep is over: q_value is the p-value after Benjamini and
-- Hochberg over `tests` comparisons, and the verdict is the one that stands after that.
CREATE TABLE comparison_sweep (
  comparison_id INTEGER PRIMARY KEY REFERENCES comparison (id),
  tests         INTEGER NOT NULL CHECK (tests >= 1),
  q_value       REAL NOT NULL CHECK (q_value BETWEEN 0 AND 1),
  verdict       TEXT NOT NULL CHECK (verdict IN ('faster', 'slower', 'same', 'unclear', 'incomparable')),
  reason        TEXT
) STRICT;

-- The attempts that a comparison was made of: ordinary attempts, of this run or (another build, a pinned run) of
-- another one.
CREATE TABLE comparison_attempt (
  comparison_id INTEGER NOT NULL REFERENCES comparison (id),
  side          TEXT NOT NULL CHECK (side IN ('A', 'B')),
  launch        INTEGER NOT NULL,
  attempt_id    INTEGER NOT NULL REFERENCES attempt (id),
  PRIMARY KEY (comparison_id, side, launch, attempt_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX comparison_attempt_by_attempt ON comparison_attempt (attempt_id);

-- === submissions ======================================================================================================

-- Whose --mine implementations a run measured: two people may hand in kernels of one name, or the same file.
CREATE TABLE run_submission (
  run_id        INTEGER PRIMARY KEY REFERENCES run (id),
  submission_id INTEGER NOT NULL REFERENCES submission (id)
) STRICT;

-- === about this file ==================================================================================================

-- Runs that were not made here: what a file knows of itself, so it is not merged. `trusted`: whoever brought the run in
-- vouches for it, perhaps later; the leaderboard shows the others as self-reported.
CREATE TABLE arrival (
  run_uid TEXT PRIMARY KEY,
  at      TEXT NOT NULL,
  how     TEXT NOT NULL CHECK (how IN ('merge', 'import')),
  source  TEXT NOT NULL,  -- the file, as given
  trusted INTEGER NOT NULL CHECK (trusted IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Who is at work on a run: taken inside BEGIN IMMEDIATE, so of two `resume` at once one gets it; `at` is renewed by
-- heartbeats; a row of a writer that is gone counts for nothing. Not data: it is changed and deleted, and not merged.
CREATE TABLE run_claim (
  run_uid TEXT PRIMARY KEY,
  owner   TEXT NOT NULL CHECK (json_valid(owner)),  -- the process, as in attempt_event's `started`
  at      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- === append-only ======================================================================================================

CREATE TRIGGER comparison_block_no_update BEFORE UPDATE ON comparison_block BEGIN SELECT raise(ABORT, 'comparison_block is append-only'); END;
CREATE TRIGGER comparison_block_no_delete BEFORE DELETE ON comparison_block BEGIN SELECT raise(ABORT, 'comparison_block is append-only'); END;
CREATE TRIGGER comparison_sweep_no_update BEFORE UPDATE ON comparison_sweep BEGIN SELECT raise(ABORT, 'comparison_sweep is append-only'); END;
CREATE TRIGGER comparison_sweep_no_delete BEFORE DELETE ON comparison_sweep BEGIN SELECT raise(ABORT, 'comparison_sweep is append-only'); END;
CREATE TRIGGER comparison_attempt_no_update BEFORE UPDATE ON comparison_attempt BEGIN SELECT raise(ABORT, 'comparison_attempt is append-only'); END;
CREATE TRIGGER comparison_attempt_no_delete BEFORE DELETE ON comparison_attempt BEGIN SELECT raise(ABORT, 'comparison_attempt is append-only'); END;
CREATE TRIGGER run_submission_no_update BEFORE UPDATE ON run_submission BEGIN SELECT raise(ABORT, 'run_submission is append-only'); END;
CREATE TRIGGER run_submission_no_delete BEFORE DELETE ON run_submission BEGIN SELECT raise(ABORT, 'run_submission is append-only'); END;
CREATE TRIGGER arrival_no_delete BEFORE DELETE ON arrival BEGIN SELECT raise(ABORT, 'arrival is append-only'); END;
