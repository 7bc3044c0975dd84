-- sentence: {model} in {precision}, {ranks} ranks ({backend}, gradients {sent}, {device}, {implementation}; rank 0,
--   last step{beside}): naive, all {naive_count} all-reduces start after backward, which ends at {naive_back} ms.
--   With overlap the first starts at {first} ms, and {under} of {count} start before backward ends at {back} ms.
-- experiment: ddp_overlap_individual_parameters_benchmarking
-- fills: b
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; sent|1|s|left; device|1|s|left;
--   implementation|1|code|left; naive_count|1|d|right; naive_back|1|.3g|right; under|1|d|right; count|1|d|right;
--   back|1|.3g|right; first|1|.3g|right; beside|1|s|left
WITH v AS MATERIALIZED (
  SELECT d.attempt_id, d.model, d."precision", d.batch, d.context, d.ranks,
         d.backend, d.wire, d.device, d.implementation, d.row_order, d.point,
         d.comparability_key, d.protocol, d.strategy, d.run_uid, d.backward AS slowest,
         row_number() OVER (PARTITION BY d.point, d.ranks, d.comparability_key, d.protocol, d.implementation, d.strategy
                                ORDER BY d.experiment <> ?1, d.run_order DESC) AS place
    FROM v_data_parallel d
   WHERE d.experiment IN (?1, 'naive_ddp_benchmarking', 'ddp_bucketed_benchmarking')
     AND d.is_good AND d.strategy IN ('naive', 'overlap')
),
-- Backward ends where its span does; on the CPU, by the clock.
told AS (
  SELECT v.*, b.back, b.back - b.begin AS length,
         (SELECT count(*) FROM span s
           WHERE s.attempt_id = v.attempt_id AND s.rank = 0 AND s.track = 'communication') AS count,
         (SELECT count(*) FROM span s
           WHERE s.attempt_id = v.attempt_id AND s.rank = 0
             AND s.track = 'communication' AND s.start_ns < b.back) AS under,
         (SELECT min(s.start_ns) FROM span s
           WHERE s.attempt_id = v.attempt_id AND s.rank = 0 AND s.track = 'communication') AS first
    FROM v
    JOIN (SELECT attempt_id, max(end_ns) AS back, min(start_ns) AS begin FROM span
           WHERE rank = 0 AND track = 'compute' AND name = 'backward'
           GROUP BY attempt_id) b USING (attempt_id)
   WHERE v.place = 1
)
SELECT o.model, o."precision", o.batch, o.context, o.ranks, o.backend,
       iif(o.wire = 'own', 'uncompressed', 'in ' || o.wire) AS sent, o.device, o.implementation,
       n.count AS naive_count, 1e-6 * n.back AS naive_back, o.under,
       o.count, 1e-6 * o.back AS back, 1e-6 * o.first AS first,
       -- Why (a) has another length of it.
       iif(printf('%.3g', 1e-6 * o.length) <> printf('%.3g', o.slowest) AND n.slowest IS NOT NULL,
           ', not the medians of (a)', '') AS beside,
       max(o.run_uid, n.run_uid) AS run_uid
  FROM told o
  JOIN told n ON n.point = o.point AND n.ranks = o.ranks
             AND n.comparability_key = o.comparability_key AND n.protocol IS o.protocol
             AND n.implementation = o.implementation AND n.strategy = 'naive' AND n.under = 0 AND n.count > 0
 WHERE o.strategy = 'overlap' AND o.under > 0
 ORDER BY o.model, o.batch, o.context, o."precision", o.ranks, o.row_order, o.backend, o.wire <> 'own', o.wire;
