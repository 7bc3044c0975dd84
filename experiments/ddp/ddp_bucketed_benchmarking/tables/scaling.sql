-- title: Weak scaling
-- caption: Median step time, slowest rank, on 1, 2, 4, 6 and 8 ranks with equal rows a rank.
-- about kept: `kept`: scaling efficiency, the time without communication on the fewest ranks over this step's on the
--   most; – on a single rank count. The step without communication may have another backend or wire.
-- experiment: ddp_bucketed_benchmarking
-- columns: model|1|s|left; context?|1|d|right; precision?|1|s|left; rows as rows a rank|1|d|right;
--   backend?|1|code|left; wire?|1|s|left; strategy|1|s|left; bucket_mb as bucket limit?|MiB|d|right;
--   implementation?|1|code|left; r1 as 1 rank|ms|.4g|right; r2 as 2|ms|.4g|right; r4 as 4|ms|.4g|right;
--   r6 as 6|ms|.4g|right; r8 as 8|ms|.4g|right; kept|%|ci(kept_low, kept_high)|right; protocol?|1|s|left;
--   device?|1|s|left
-- note: `wire`: dtype in which gradients are communicated; `own`: uncompressed.
-- blank: –
-- note: `missing`: not measured; the commands below with that `world_size`, and `batch` scaled with it, measure it, as
--   does `tools/gpu_rows`.
WITH one AS MATERIALIZED (
  SELECT *, max(ranks) FILTER (WHERE is_good) OVER line AS most, min(attempt_id) OVER line AS line
    FROM (SELECT *, batch / ranks AS rows,
                 iif(is_good, time_ms,
                     iif(ending = 'not_asked', coalesce(message, status), replace(status, '_', ' '))) AS cell
            FROM v_data_parallel
           WHERE experiment = ?1 AND ranks IN (1, 2, 4, 6, 8)
             AND (status <> 'skipped' OR message NOT LIKE 'a limit of buckets%'))
  WINDOW line AS (PARTITION BY model, context, "precision", rows, backend, wire, strategy,
                               bucket_mb, implementation, protocol, device, comparability_key)
),
alone AS (
  SELECT o.attempt_id AS beside, o.line, n.run_uid, n.time_ms AS alone_ms,
         n.low_ms AS alone_low, n.high_ms AS alone_high,
         row_number() OVER (PARTITION BY o.attempt_id
                                ORDER BY n.ranks, n.backend = o.backend DESC, n.wire = o.wire DESC,
                                         n.run_order DESC, n.attempt_uid DESC) AS place
    FROM one o
    JOIN one n ON n.model = o.model AND n.context = o.context AND n."precision" = o."precision" AND n.rows = o.rows
              AND n.implementation = o.implementation AND n.protocol IS o.protocol
              AND n.comparability_key = o.comparability_key
   WHERE n.strategy = 'none' AND n.is_good AND n.ranks < o.most
),
-- A footnote tells of the runs that rows name, one each: each run falls to one of the rows it is part of, in turn, and
-- a row names the newest of its own.
named AS (
  SELECT line, run_uid, row_number() OVER (PARTITION BY line ORDER BY place <> turn % holders, run_uid DESC) AS choice
    FROM (SELECT line, run_uid, count(*) OVER (PARTITION BY run_uid) AS holders,
                 row_number() OVER (PARTITION BY run_uid ORDER BY line) - 1 AS place,
                 dense_rank() OVER (ORDER BY run_uid) AS turn
            FROM (SELECT line, run_uid FROM one WHERE most IS NOT NULL
                   UNION
                  SELECT line, run_uid FROM alone WHERE place = 1))
)
SELECT o.model, o.context, o."precision", o.rows, o.backend, o.wire, o.strategy,
       iif(o.bucket_mb > 0, o.bucket_mb, '–') AS bucket_mb, o.implementation,
       coalesce(max(cell) FILTER (WHERE ranks = 1), iif(o.strategy = 'none', 'missing', '–')) AS r1,
       coalesce(max(cell) FILTER (WHERE ranks = 2), 'missing') AS r2,
       coalesce(max(cell) FILTER (WHERE ranks = 4), 'missing') AS r4,
       coalesce(max(cell) FILTER (WHERE ranks = 6), 'missing') AS r6,
       coalesce(max(cell) FILTER (WHERE ranks = 8), 'missing') AS r8,
       100 * a.alone_ms / max(o.time_ms) FILTER (WHERE o.ranks = o.most) AS kept,
       100 * a.alone_low / max(o.high_ms) FILTER (WHERE o.ranks = o.most) AS kept_low,
       100 * a.alone_high / max(o.low_ms) FILTER (WHERE o.ranks = o.most) AS kept_high,
       o.protocol, o.device, r.run_uid
  FROM one o
  JOIN named r ON r.line = o.line AND r.choice = 1
  LEFT JOIN alone a ON a.beside = o.attempt_id AND a.place = 1
 GROUP BY o.line
 ORDER BY o.model, o.context, o."precision", o.rows, min(o.row_order), o.backend, o.wire <> 'own',
          o.wire, o.strategy <> 'none', o.strategy <> 'naive', o.strategy, o.bucket_mb;
