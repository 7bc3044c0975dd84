-- Schema version 4: more roles than reference and peer, so that views and tables choose implementations by role and not
-- by lists of names. Which roles there are is the program's matter (src/contract/role.hpp): another one needs no
-- migration. NULL: one of ours, or a --mine file.

-- Attempts refer to the table by its name: while it is away their references are broken, which counts at the commit alone.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE plan_case_2 AS SELECT * FROM plan_case;
DROP TABLE plan_case;  -- its index and triggers go with it

CREATE TABLE plan_case (
  run_id            INTEGER NOT NULL REFERENCES run (id),
  seq               INTEGER NOT NULL,
  case_id           INTEGER NOT NULL REFERENCES case_def (id),
  implementation_id INTEGER NOT NULL REFERENCES implementation (id),
  role              TEXT CHECK (role <> ''),  -- of the implementation in its experiment
  world_size        INTEGER NOT NULL CHECK (world_size >= 1),
  task              TEXT NOT NULL CHECK (task IN ('measure', 'law')),
  law               TEXT CHECK ((task = 'law') = (law IS NOT NULL)),
  seed              TEXT NOT NULL,
  skip_reason       TEXT,
  mine_path         TEXT,  -- of a --mine file, as given on that machine
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

-- Until now the name said what these are.
INSERT INTO plan_case
  SELECT p.run_id, p.seq, p.case_id, p.implementation_id,
         CASE
           WHEN p.role IS NOT NULL OR i.is_mine THEN p.role
           WHEN i.name IN ('naive', 'naive_cuda') THEN 'naive'
           WHEN i.name = 'reference_cuda' THEN 'gpu_reference'
           WHEN i.name IN ('literal', 'naive_cuda_literal') THEN 'literal'
           WHEN i.name = 'fused_softmax' THEN 'intermediate'
           WHEN c.experiment = 'leaderboard_2026' AND i.name IN ('predicted', 'predicted_eager') THEN 'predicted'
           WHEN c.experiment = 'leaderboard_2026' AND i.name IN ('fsdp', 'fsdp_host') THEN 'sharded'
         END,
         p.world_size, p.task, p.law, p.seed, p.skip_reason, p.mine_path
    FROM plan_case_2 p
    JOIN implementation i ON i.id = p.implementation_id
    JOIN case_def c       ON c.id = p.case_id;
DROP TABLE plan_case_2;

CREATE INDEX plan_case_by_case ON plan_case (case_id, implementation_id);
CREATE TRIGGER plan_case_no_update BEFORE UPDATE ON plan_case BEGIN SELECT raise(ABORT, 'plan_case is append-only'); END;
CREATE TRIGGER plan_case_no_delete BEFORE DELETE ON plan_case BEGIN SELECT raise(ABORT, 'plan_case is append-only'); END;
