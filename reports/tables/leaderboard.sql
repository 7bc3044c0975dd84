-- title: Leaderboard
-- caption: Median time of one call, or of one unit of a rate that a program prints, with its 95 % interval, newest of
--   each submission. A rank is 1 + the number of entries whose interval lies entirely below; equal ranks are ties.
-- experiment: *
-- columns: experiment|1|code|left; case?|1|s|left; standing|1|s|left; rank|1|s|right; author|1|s|left;
--   implementation|1|code|left; language|1|s|left; time|ms|ci(low, high)|right;
--   behind|×|ci(behind_low, behind_high)|right; protocol?|1|s|left; device?|1|s|left; run|1|uid|left
-- note: verified: measured by the owner of this database. self-reported: merged or imported.
-- note: Only checked outputs are ranked, and only with an interval (six samples or more: `--protocol kernel`) and one
--   mode. Code that fails a law here has no rank.
-- empty: No submissions yet: `syslab run NAME --mine me=kernel.so --author ALIAS`.
WITH law AS (
  SELECT c.experiment, i.name, i.digest, k.contract, k.outcome,
         row_number() OVER (PARTITION BY c.experiment, i.id, k.name, k.contract ORDER BY k.uid DESC) AS newest,
         max(k.contract = 'handout') OVER (PARTITION BY c.experiment, i.id) AS is_of_handout
    FROM plan_case p
    JOIN run r            ON r.id = p.run_id
    JOIN case_def c       ON c.id = p.case_id
    JOIN implementation i ON i.id = p.implementation_id
    JOIN attempt a        ON a.run_id = p.run_id AND a.plan_seq = p.seq
    JOIN check_result k   ON k.attempt_id = a.id AND k.name = p.law AND k.outcome IN ('passed', 'falsified')
   WHERE p.task = 'law' AND r.uid NOT IN (SELECT run_uid FROM arrival WHERE NOT trusted)
),
-- By the contract that decides: the hand-out's where it was asked, else the full one.
wrong AS (
  SELECT DISTINCT experiment, name, digest FROM law
   WHERE newest = 1 AND outcome = 'falsified' AND (contract = 'handout' OR NOT is_of_handout)
),
entry AS (
  SELECT t.experiment, t.case_id, t.params, t.case_text, t.author, t.implementation, t.is_mine, t.language, t.protocol,
         t.comparability_key, t.world_size, coalesce(t.gpu_name, t.cpu_model, 'unknown') AS device, t.measured_here,
         t.run_uid, m.value AS time, m.ci_low AS low, m.ci_high AS high,
         EXISTS (SELECT 1 FROM json_each(t.facts, '$.noise') j WHERE j.value = 'bimodal') AS two_modes,
         EXISTS (SELECT 1 FROM wrong w WHERE w.experiment = t.experiment AND w.name = t.implementation
                    AND w.digest = t.implementation_digest) AS is_wrong
    FROM v_newest t
    JOIN metric m ON m.attempt_id = t.attempt_id AND m.name = 'time' AND m.unit = 's'
          AND m.rank = (SELECT x.rank FROM metric x WHERE x.attempt_id = t.attempt_id AND x.name = 'time'
                         ORDER BY x.rank <> -1, x.value DESC, x.rank LIMIT 1)
   WHERE t.status = 'ok' AND t.task = 'measure' AND t.checked AND m.value > 0 AND t.role IS NOT 'reference'
     AND (?1 = '*' OR t.experiment = ?1)
),
-- Cases for which nobody handed anything in have no board.
board AS (
  SELECT * FROM entry
   WHERE case_id IN (SELECT case_id FROM entry WHERE is_mine)
),
ranked AS (
  SELECT b.*, iif(b.low IS NULL OR b.two_modes OR b.is_wrong, NULL, 1 + (SELECT count(*) FROM board o
                    WHERE o.case_id = b.case_id AND o.protocol IS b.protocol AND o.world_size = b.world_size
                      AND o.comparability_key = b.comparability_key AND o.measured_here = b.measured_here
                      AND o.high < b.low AND NOT o.two_modes AND NOT o.is_wrong)) AS place,
         first_value(b.time) OVER fastest AS best, first_value(b.low) OVER fastest AS best_low,
         first_value(b.high) OVER fastest AS best_high, row_number() OVER fastest AS from_best
    FROM board b
  WINDOW field AS (PARTITION BY b.case_id, b.protocol, b.world_size, b.comparability_key, b.measured_here),
         fastest AS (field ORDER BY b.low IS NULL OR b.two_modes OR b.is_wrong, b.time)  -- of those with a rank, if any
)
SELECT experiment, case_text AS "case",
       iif(measured_here, 'verified', 'self-reported') AS standing,
       coalesce(place
                || iif(count(*) OVER (PARTITION BY case_id, protocol, world_size, comparability_key, measured_here,
                                                   place) > 1, ' (tie)', ''),
                CASE WHEN is_wrong THEN 'unranked: fails a law' WHEN two_modes THEN 'unranked: two modes'
                     ELSE 'unranked' END)
         AS rank,
       iif(is_mine, coalesce(author, 'unnamed'), 'syslab') AS author, implementation, language,
       1e3 * time AS time, 1e3 * low AS low, 1e3 * high AS high, time / best AS behind,
       iif(from_best > 1, low / best_high, NULL) AS behind_low,
       iif(from_best > 1, high / best_low, NULL) AS behind_high, protocol, device, run_uid AS run, run_uid
  FROM ranked
 ORDER BY experiment, params, protocol, device, measured_here DESC, place IS NULL, place, time, author;
