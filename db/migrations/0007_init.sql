-- Schema version 7, the first one to be released. Explained, table by table, in db/README.md.
--
-- Integers are keys inside this file only; a uid names a thing everywhere. A uid is a UUIDv7 where something happened
-- (run, attempt, check_result, artifact, comparison, submission) and a SHA-256 of the row's whole content where a fact
-- is shared (environment, build, implementation, case_def), so equal facts from two files unite when they are merged.
-- For the same reason no key counts upwards within a file where two copies of it could count apart.

-- === what was there: shared facts =====================================================================================

CREATE TABLE environment (
  id                INTEGER PRIMARY KEY,
  uid               TEXT NOT NULL UNIQUE,
  comparability_key TEXT NOT NULL,
  facts             TEXT NOT NULL
) STRICT;

CREATE TABLE build (
  id    INTEGER PRIMARY KEY,
  uid   TEXT NOT NULL UNIQUE,
  facts TEXT NOT NULL
) STRICT;

-- An implementation as it stood when it was measured: another digest is another row.
CREATE TABLE implementation (
  id       INTEGER PRIMARY KEY,
  uid      TEXT NOT NULL UNIQUE,
  name     TEXT NOT NULL,
  digest   TEXT NOT NULL,
  language TEXT NOT NULL,
  is_mine  INTEGER NOT NULL CHECK (is_mine IN (0, 1))
) STRICT;

-- `version` is raised by the experiment's author when a number changes its meaning; it is part of the uid.
CREATE TABLE case_def (
  id         INTEGER PRIMARY KEY,
  uid        TEXT NOT NULL UNIQUE,
  experiment TEXT NOT NULL,
  version    TEXT NOT NULL,
  params     TEXT NOT NULL
) STRICT;

-- === what was asked ===================================================================================================

CREATE TABLE run (
  id             INTEGER PRIMARY KEY,
  uid            TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  build_id       INTEGER NOT NULL REFERENCES build (id),
  verb           TEXT NOT NULL,
  started_at     TEXT NOT NULL,
  label          TEXT,
  argv           TEXT NOT NULL,
  protocol       TEXT NOT NULL,
  root_seed      TEXT NOT NULL  -- unsigned 64-bit: too wide for SQLite's integer
) STRICT;

-- The plan of a run, case by case: what `resume` compares with what was done.
CREATE TABLE plan_case (
  run_id            INTEGER NOT NULL REFERENCES run (id),
  seq               INTEGER NOT NULL,
  case_id           INTEGER NOT NULL REFERENCES case_def (id),
  implementation_id INTEGER NOT NULL REFERENCES implementation (id),
  role              TEXT CHECK (role <> ''),  -- of the implementation (src/contract/role.hpp); NULL: ours, or --mine
  world_size        INTEGER NOT NULL CHECK (world_size >= 1),
  task              TEXT NOT NULL CHECK (task IN ('measure', 'law')),
  law               TEXT CHECK ((task = 'law') = (law IS NOT NULL)),
  seed              TEXT NOT NULL,
  skip_reason       TEXT,
  mine_path         TEXT,  -- of a --mine file, as given on that machine
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX plan_case_by_case ON plan_case (case_id, implementation_id);

-- What the program that made a run knew of an implementation of ours in its plan: constants and properties that
-- reports print (src/contract/rung_fact.hpp).
CREATE TABLE rung_fact (
  run_id     INTEGER NOT NULL REFERENCES run (id),
  experiment TEXT NOT NULL,
  rung       TEXT NOT NULL,
  fact       TEXT NOT NULL,
  value      TEXT NOT NULL,
  unit       TEXT,
  PRIMARY KEY (run_id, experiment, rung, fact)
) STRICT, WITHOUT ROWID;

-- A name given to a run; the newest counts.
CREATE TABLE pin (
  name    TEXT NOT NULL,
  at      TEXT NOT NULL,
  run_uid TEXT NOT NULL,
  note    TEXT,
  PRIMARY KEY (name, at, run_uid)
) STRICT, WITHOUT ROWID;

-- Somebody's implementations, handed in together.
CREATE TABLE submission (
  id       INTEGER PRIMARY KEY,
  uid      TEXT NOT NULL UNIQUE,
  at       TEXT NOT NULL,
  author   TEXT NOT NULL,  -- an alias, as the author wishes to be called
  digest   TEXT NOT NULL,
  language TEXT NOT NULL,
  note     TEXT
) STRICT;

CREATE TABLE submission_implementation (
  submission_id     INTEGER NOT NULL REFERENCES submission (id),
  implementation_id INTEGER NOT NULL REFERENCES implementation (id),
  PRIMARY KEY (submission_id, implementation_id)
) STRICT, WITHOUT ROWID;

-- Whose --mine implementations a run measured: two people may hand in kernels of one name, or the same file.
CREATE TABLE run_submission (
  run_id        INTEGER PRIMARY KEY REFERENCES run (id),
  submission_id INTEGER NOT NULL REFERENCES submission (id)
) STRICT;

-- === what happened ====================================================================================================

-- One try at a planned case. What became of it stands in attempt_event: this row never changes.
CREATE TABLE attempt (
  id       INTEGER PRIMARY KEY,
  uid      TEXT NOT NULL UNIQUE,
  run_id   INTEGER NOT NULL,
  plan_seq INTEGER NOT NULL,
  FOREIGN KEY (run_id, plan_seq) REFERENCES plan_case (run_id, seq)
) STRICT;
CREATE INDEX attempt_by_plan ON attempt (run_id, plan_seq, uid);

-- started (detail: who writes), heartbeat, and one end (detail: {"message": …}). `aborted` is also what a later start
-- writes for a writer that died; a real end found afterwards outweighs it (view v_attempt).
CREATE TABLE attempt_event (
  attempt_id INTEGER NOT NULL REFERENCES attempt (id),
  at         TEXT NOT NULL,
  status     TEXT NOT NULL CHECK (status IN ('started', 'heartbeat', 'ok', 'check_failed', 'unsupported', 'skipped',
                                             'oom', 'timeout', 'crashed', 'error', 'aborted')),
  detail     TEXT,
  PRIMARY KEY (attempt_id, at, status)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_end ON attempt_event (attempt_id, status, at) WHERE status NOT IN ('started', 'heartbeat');

-- How an attempt was made: {"stop": "precision", "isolation": "case", …}.
CREATE TABLE attempt_facts (
  attempt_id INTEGER PRIMARY KEY REFERENCES attempt (id),
  facts      TEXT NOT NULL
) STRICT;

-- === what was found ===================================================================================================

CREATE TABLE series (
  id         INTEGER PRIMARY KEY,
  attempt_id INTEGER NOT NULL REFERENCES attempt (id),
  name       TEXT NOT NULL,
  unit       TEXT NOT NULL,
  UNIQUE (attempt_id, name, unit)
) STRICT;

-- Raw, in order of time, nothing dropped but by a reservoir that the attempt's facts tell of. NULL: not a number.
CREATE TABLE sample (
  series_id INTEGER NOT NULL REFERENCES series (id),
  launch    INTEGER NOT NULL,
  rank      INTEGER NOT NULL,
  idx       INTEGER NOT NULL,
  value     REAL,
  sm_hz     REAL,
  flags     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (series_id, launch, rank, idx)
) STRICT, WITHOUT ROWID;

-- A value that is missing, or is not a number, says why in `note`.
CREATE TABLE metric (
  attempt_id INTEGER NOT NULL REFERENCES attempt (id),
  name       TEXT NOT NULL,
  rank       INTEGER NOT NULL,
  unit       TEXT NOT NULL,
  value      REAL,
  ci_low     REAL,
  ci_high    REAL,
  n          INTEGER,
  note       TEXT,
  PRIMARY KEY (attempt_id, name, rank),
  CHECK (value IS NOT NULL OR note IS NOT NULL)
) STRICT, WITHOUT ROWID;

-- A comparison with the reference ("reference:out") or a law, with all that `replay` needs.
CREATE TABLE check_result (
  id               INTEGER PRIMARY KEY,
  uid              TEXT NOT NULL UNIQUE,
  attempt_id       INTEGER NOT NULL REFERENCES attempt (id),
  name             TEXT NOT NULL,
  contract         TEXT CHECK (contract IN ('handout', 'full')),
  outcome          TEXT NOT NULL CHECK (outcome IN ('passed', 'falsified', 'gave_up', 'error', 'not_run')),
  cases_run        INTEGER NOT NULL,
  shrinks_tried    INTEGER NOT NULL,
  shrinks_taken    INTEGER NOT NULL,
  seed             TEXT NOT NULL,
  reproduce        TEXT,
  counterexample   TEXT,
  message          TEXT,
  worst_error      REAL,
  tolerance        REAL,
  fraction_checked REAL NOT NULL,
  -- What a law met, as src/contract/finding.hpp has it; NULL: none, or nobody said.
  finding          TEXT CHECK (finding <> ''),
  promised         INTEGER NOT NULL DEFAULT 0 CHECK (promised IN (0, 1)),
  seldom           INTEGER NOT NULL DEFAULT 0 CHECK (seldom IN (0, 1)),
  about            TEXT CHECK (about <> ''),
  cause            TEXT CHECK (cause <> ''),
  input            TEXT CHECK (input <> ''),
  first_wrong      TEXT CHECK (first_wrong <> ''),
  never_drawn      TEXT CHECK (never_drawn <> ''),
  small            INTEGER NOT NULL DEFAULT 0 CHECK (small IN (0, 1))
) STRICT;
CREATE INDEX check_result_by_attempt ON check_result (attempt_id);

CREATE TABLE artifact (
  id         INTEGER PRIMARY KEY,
  uid        TEXT NOT NULL UNIQUE,
  attempt_id INTEGER NOT NULL REFERENCES attempt (id),
  kind       TEXT NOT NULL,
  media_type TEXT NOT NULL,
  sha256     TEXT NOT NULL,
  bytes      INTEGER NOT NULL,
  content    BLOB NOT NULL
) STRICT;
CREATE INDEX artifact_by_attempt ON artifact (attempt_id);

CREATE TABLE mem_event (
  attempt_id  INTEGER NOT NULL REFERENCES attempt (id),
  rank        INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  t_ns        INTEGER NOT NULL,
  delta_bytes INTEGER NOT NULL,
  tag         TEXT NOT NULL,
  category    TEXT NOT NULL,
  PRIMARY KEY (attempt_id, rank, seq)
) STRICT, WITHOUT ROWID;

-- Kernels of a trace, summed by name.
CREATE TABLE kernel_stat (
  attempt_id INTEGER NOT NULL REFERENCES attempt (id),
  rank       INTEGER NOT NULL,
  phase      TEXT NOT NULL,  -- "forward", "backward", …; empty: the whole attempt
  kernel     TEXT NOT NULL,
  calls      INTEGER NOT NULL,
  total_ns   INTEGER NOT NULL,
  min_ns     INTEGER NOT NULL,
  max_ns     INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, rank, phase, kernel)
) STRICT, WITHOUT ROWID;

-- Intervals of a timeline: phases, communication, kernels on streams.
CREATE TABLE span (
  attempt_id INTEGER NOT NULL REFERENCES attempt (id),
  rank       INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  track      TEXT NOT NULL,  -- "host", "stream 7", "nccl"
  name       TEXT NOT NULL,
  category   TEXT NOT NULL,
  start_ns   INTEGER NOT NULL,
  end_ns     INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, rank, seq),
  CHECK (end_ns >= start_ns)
) STRICT, WITHOUT ROWID;

-- What `compare` and `gate` find. `log_ratio` is the estimate of ln(time of B / time of A), with its 95 % interval;
-- `delta` the relative change that counts as one; `p_value` that of no change beyond delta; `value_a`, `value_b` the sides'
-- values, in the metric's unit. `mode`: both sides measured in turn, or against what is stored. `confirms`: uid of the
-- comparison that this one repeats. `facts`: {"differing": […], "stop": …}.
CREATE TABLE comparison (
  id         INTEGER PRIMARY KEY,
  uid        TEXT NOT NULL UNIQUE,
  run_id     INTEGER NOT NULL REFERENCES run (id),
  experiment TEXT NOT NULL,
  params     TEXT NOT NULL,  -- the axes that both sides share
  metric     TEXT NOT NULL,
  side_a     TEXT NOT NULL,
  side_b     TEXT NOT NULL,
  blocks     INTEGER NOT NULL,
  log_ratio  REAL,
  ci_low     REAL,
  ci_high    REAL,
  verdict    TEXT NOT NULL CHECK (verdict IN ('faster', 'slower', 'same', 'unclear', 'incomparable')),
  reason     TEXT,
  at         TEXT,
  mode       TEXT CHECK (mode IN ('interleaved', 'stored')),
  unit       TEXT,
  value_a    REAL,
  value_b    REAL,
  launches   INTEGER CHECK (launches >= 0),
  delta      REAL CHECK (delta > 0),
  p_value    REAL CHECK (p_value BETWEEN 0 AND 1),
  confirms   TEXT,
  facts      TEXT
) STRICT;
CREATE INDEX comparison_by_run ON comparison (run_id);

-- A block is four bursts in the order that `order_of` names; blocks are counted apart in each launch. log_ratio = mean of
-- ln(B) - mean of ln(A) of this block.
CREATE TABLE comparison_block (
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

-- === about this file ==================================================================================================

CREATE TABLE schema_migration (
  version    INTEGER PRIMARY KEY,
  applied_at TEXT NOT NULL,
  sha256     TEXT NOT NULL,
  tool       TEXT NOT NULL
) STRICT;

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
  owner   TEXT NOT NULL,  -- the process, as in attempt_event's `started`
  at      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- That this user's own program wrote the run, and which files of --mine it loads: HMAC-SHA-256 under a key that never
-- leaves her state folder. Merged like all data: only she can make a row that counts for her.
CREATE TABLE run_mac (
  run_uid TEXT NOT NULL,
  mac     BLOB NOT NULL,
  PRIMARY KEY (run_uid, mac)
) STRICT, WITHOUT ROWID;

-- === append-only ======================================================================================================

CREATE TRIGGER environment_no_update BEFORE UPDATE ON environment BEGIN SELECT raise(ABORT, 'environment is append-only'); END;
CREATE TRIGGER environment_no_delete BEFORE DELETE ON environment BEGIN SELECT raise(ABORT, 'environment is append-only'); END;
CREATE TRIGGER build_no_update BEFORE UPDATE ON build BEGIN SELECT raise(ABORT, 'build is append-only'); END;
CREATE TRIGGER build_no_delete BEFORE DELETE ON build BEGIN SELECT raise(ABORT, 'build is append-only'); END;
CREATE TRIGGER implementation_no_update BEFORE UPDATE ON implementation BEGIN SELECT raise(ABORT, 'implementation is append-only'); END;
CREATE TRIGGER implementation_no_delete BEFORE DELETE ON implementation BEGIN SELECT raise(ABORT, 'implementation is append-only'); END;
CREATE TRIGGER case_def_no_update BEFORE UPDATE ON case_def BEGIN SELECT raise(ABORT, 'case_def is append-only'); END;
CREATE TRIGGER case_def_no_delete BEFORE DELETE ON case_def BEGIN SELECT raise(ABORT, 'case_def is append-only'); END;
CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT raise(ABORT, 'run is append-only'); END;
CREATE TRIGGER run_no_delete BEFORE DELETE ON run BEGIN SELECT raise(ABORT, 'run is append-only'); END;
CREATE TRIGGER plan_case_no_update BEFORE UPDATE ON plan_case BEGIN SELECT raise(ABORT, 'plan_case is append-only'); END;
CREATE TRIGGER plan_case_no_delete BEFORE DELETE ON plan_case BEGIN SELECT raise(ABORT, 'plan_case is append-only'); END;
CREATE TRIGGER rung_fact_no_update BEFORE UPDATE ON rung_fact
BEGIN SELECT raise(ABORT, 'rung_fact is append-only'); END;
CREATE TRIGGER rung_fact_no_delete BEFORE DELETE ON rung_fact
BEGIN SELECT raise(ABORT, 'rung_fact is append-only'); END;
CREATE TRIGGER pin_no_update BEFORE UPDATE ON pin BEGIN SELECT raise(ABORT, 'pin is append-only'); END;
CREATE TRIGGER pin_no_delete BEFORE DELETE ON pin BEGIN SELECT raise(ABORT, 'pin is append-only'); END;
CREATE TRIGGER submission_no_update BEFORE UPDATE ON submission BEGIN SELECT raise(ABORT, 'submission is append-only'); END;
CREATE TRIGGER submission_no_delete BEFORE DELETE ON submission BEGIN SELECT raise(ABORT, 'submission is append-only'); END;
CREATE TRIGGER submission_implementation_no_update BEFORE UPDATE ON submission_implementation BEGIN SELECT raise(ABORT, 'submission_implementation is append-only'); END;
CREATE TRIGGER submission_implementation_no_delete BEFORE DELETE ON submission_implementation BEGIN SELECT raise(ABORT, 'submission_implementation is append-only'); END;
CREATE TRIGGER attempt_no_update BEFORE UPDATE ON attempt BEGIN SELECT raise(ABORT, 'attempt is append-only'); END;
CREATE TRIGGER attempt_no_delete BEFORE DELETE ON attempt BEGIN SELECT raise(ABORT, 'attempt is append-only'); END;
CREATE TRIGGER attempt_event_no_update BEFORE UPDATE ON attempt_event BEGIN SELECT raise(ABORT, 'attempt_event is append-only'); END;
CREATE TRIGGER attempt_event_no_delete BEFORE DELETE ON attempt_event BEGIN SELECT raise(ABORT, 'attempt_event is append-only'); END;
CREATE TRIGGER attempt_facts_no_update BEFORE UPDATE ON attempt_facts BEGIN SELECT raise(ABORT, 'attempt_facts is append-only'); END;
CREATE TRIGGER attempt_facts_no_delete BEFORE DELETE ON attempt_facts BEGIN SELECT raise(ABORT, 'attempt_facts is append-only'); END;
CREATE TRIGGER series_no_update BEFORE UPDATE ON series BEGIN SELECT raise(ABORT, 'series is append-only'); END;
CREATE TRIGGER series_no_delete BEFORE DELETE ON series BEGIN SELECT raise(ABORT, 'series is append-only'); END;
CREATE TRIGGER sample_no_update BEFORE UPDATE ON sample BEGIN SELECT raise(ABORT, 'sample is append-only'); END;
CREATE TRIGGER sample_no_delete BEFORE DELETE ON sample BEGIN SELECT raise(ABORT, 'sample is append-only'); END;
CREATE TRIGGER metric_no_update BEFORE UPDATE ON metric BEGIN SELECT raise(ABORT, 'metric is append-only'); END;
CREATE TRIGGER metric_no_delete BEFORE DELETE ON metric BEGIN SELECT raise(ABORT, 'metric is append-only'); END;
CREATE TRIGGER check_result_no_update BEFORE UPDATE ON check_result BEGIN SELECT raise(ABORT, 'check_result is append-only'); END;
CREATE TRIGGER check_result_no_delete BEFORE DELETE ON check_result BEGIN SELECT raise(ABORT, 'check_result is append-only'); END;
CREATE TRIGGER artifact_no_update BEFORE UPDATE ON artifact BEGIN SELECT raise(ABORT, 'artifact is append-only'); END;
CREATE TRIGGER artifact_no_delete BEFORE DELETE ON artifact BEGIN SELECT raise(ABORT, 'artifact is append-only'); END;
CREATE TRIGGER mem_event_no_update BEFORE UPDATE ON mem_event BEGIN SELECT raise(ABORT, 'mem_event is append-only'); END;
CREATE TRIGGER mem_event_no_delete BEFORE DELETE ON mem_event BEGIN SELECT raise(ABORT, 'mem_event is append-only'); END;
CREATE TRIGGER kernel_stat_no_update BEFORE UPDATE ON kernel_stat BEGIN SELECT raise(ABORT, 'kernel_stat is append-only'); END;
CREATE TRIGGER kernel_stat_no_delete BEFORE DELETE ON kernel_stat BEGIN SELECT raise(ABORT, 'kernel_stat is append-only'); END;
CREATE TRIGGER span_no_update BEFORE UPDATE ON span BEGIN SELECT raise(ABORT, 'span is append-only'); END;
CREATE TRIGGER span_no_delete BEFORE DELETE ON span BEGIN SELECT raise(ABORT, 'span is append-only'); END;
CREATE TRIGGER comparison_no_update BEFORE UPDATE ON comparison BEGIN SELECT raise(ABORT, 'comparison is append-only'); END;
CREATE TRIGGER comparison_no_delete BEFORE DELETE ON comparison BEGIN SELECT raise(ABORT, 'comparison is append-only'); END;
CREATE TRIGGER comparison_block_no_update BEFORE UPDATE ON comparison_block BEGIN SELECT raise(ABORT, 'comparison_block is append-only'); END;
CREATE TRIGGER comparison_block_no_delete BEFORE DELETE ON comparison_block BEGIN SELECT raise(ABORT, 'comparison_block is append-only'); END;
CREATE TRIGGER schema_migration_no_update BEFORE UPDATE ON schema_migration BEGIN SELECT raise(ABORT, 'schema_migration is append-only'); END;
CREATE TRIGGER schema_migration_no_delete BEFORE DELETE ON schema_migration BEGIN SELECT raise(ABORT, 'schema_migration is append-only'); END;
CREATE TRIGGER comparison_sweep_no_update BEFORE UPDATE ON comparison_sweep BEGIN SELECT raise(ABORT, 'comparison_sweep is append-only'); END;
CREATE TRIGGER comparison_sweep_no_delete BEFORE DELETE ON comparison_sweep BEGIN SELECT raise(ABORT, 'comparison_sweep is append-only'); END;
CREATE TRIGGER comparison_attempt_no_update BEFORE UPDATE ON comparison_attempt BEGIN SELECT raise(ABORT, 'comparison_attempt is append-only'); END;
CREATE TRIGGER comparison_attempt_no_delete BEFORE DELETE ON comparison_attempt BEGIN SELECT raise(ABORT, 'comparison_attempt is append-only'); END;
CREATE TRIGGER run_submission_no_update BEFORE UPDATE ON run_submission BEGIN SELECT raise(ABORT, 'run_submission is append-only'); END;
CREATE TRIGGER run_submission_no_delete BEFORE DELETE ON run_submission BEGIN SELECT raise(ABORT, 'run_submission is append-only'); END;
CREATE TRIGGER arrival_no_delete BEFORE DELETE ON arrival BEGIN SELECT raise(ABORT, 'arrival is append-only'); END;
CREATE TRIGGER run_mac_no_update BEFORE UPDATE ON run_mac BEGIN SELECT raise(ABORT, 'run_mac is append-only'); END;
CREATE TRIGGER run_mac_no_delete BEFORE DELETE ON run_mac BEGIN SELECT raise(ABORT, 'run_mac is append-only'); END;
