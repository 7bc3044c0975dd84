-- Runs with what sorts them: `run_order`, as in v_attempt, by which no run that is dated in the future is the newest;
-- `in_future` says which are.
CREATE VIEW v_run_order AS
SELECT id AS run_id, uid AS run_uid, verb, started_at, started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS in_future,
       iif(started_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ' ', '') || started_at AS run_order
  FROM run;
