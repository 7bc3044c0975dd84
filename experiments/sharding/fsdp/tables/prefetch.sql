-- sentence: Prefetching ({model} in {precision}, {backend}, {device}, {implementation}, by {granularity}; rank 0, last
--   step): {order}, from {first} to {last} and from
--   {back_first} to {back_last}, each at most {most} ahead of use.{unit}
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; backend|1|code|left; device|1|s|left;
--   implementation|1|code|left; granularity|1|s|left; order|1|s|left; first|1|code|left; last|1|code|left;
--   back_first|1|code|left; back_last|1|code|left; most|1|s|left; unit|1|s|left
WITH v AS MATERIALIZED (
  SELECT * FROM v_measured WHERE experiment = ?1 AND is_good AND world_size > 1
),
spans AS (
  SELECT s.*, row_number() OVER (PARTITION BY s.attempt_id, s.track, s.category, s.name ORDER BY s.start_ns) AS place
    FROM span s JOIN v USING (attempt_id)
   WHERE s.rank = 0 AND s.track IN ('gather', 'wait')
),
unit AS (
  SELECT g.attempt_id, g.category AS pass, g.name, g.start_ns AS started, w.end_ns AS used
    FROM spans g
    JOIN spans w ON w.attempt_id = g.attempt_id AND w.track = 'wait'
                AND w.category = g.category AND w.name = g.name AND w.place = g.place
   WHERE g.track = 'gather'
),
ordered AS (
  SELECT *, row_number() OVER (PARTITION BY attempt_id, pass ORDER BY started, used) AS start_at,
         row_number() OVER (PARTITION BY attempt_id, pass ORDER BY used, started) AS use_at,
         (SELECT count(*) FROM unit o
           WHERE o.attempt_id = unit.attempt_id AND o.pass = unit.pass AND o.used <= unit.started) AS in_use
    FROM unit
),
told AS (
  SELECT attempt_id, count(*) AS gathers,
         count(DISTINCT iif(pass = 'forward' AND name GLOB 'layers.*',
                            substr(name, 8, instr(substr(name, 8), '.') - 1), NULL)) AS blocks,
         sum(pass = 'forward' AND name GLOB 'layers.*') AS of_blocks, sum(pass = 'forward') AS forwards,
         sum(start_at <> use_at) AS out_of_order, max(use_at - in_use) AS most,
         max(name) FILTER (WHERE pass = 'forward' AND use_at = 1) AS first,
         max(name) FILTER (WHERE pass = 'backward' AND use_at = 1) AS back_first,
         (SELECT name FROM ordered o
           WHERE o.attempt_id = ordered.attempt_id AND pass = 'forward' ORDER BY use_at DESC LIMIT 1) AS last,
         (SELECT name FROM ordered o
           WHERE o.attempt_id = ordered.attempt_id AND pass = 'backward' ORDER BY use_at DESC LIMIT 1) AS back_last
    FROM ordered
   GROUP BY attempt_id
)
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision",
       v.params ->> '$.batch' AS batch, v.params ->> '$.context' AS context,
       v.world_size AS ranks, v.backend, v.device, v.implementation, v.params ->> '$.granularity' AS granularity,
       iif(t.out_of_order = 0,
           printf('the %d all-gathers of forward%s and %d of backward start in the order of use', t.forwards,
                  iif(t.blocks > 1 AND t.of_blocks % t.blocks = 0 AND t.forwards = t.of_blocks + 2,
                      printf(' (%d a block%s; embeddings, LM head)', t.of_blocks / t.blocks,
                             iif(v.params ->> '$.granularity' = 'layer' AND t.of_blocks = 4 * t.blocks,
                                 ': Q with K and V, output, W1 with W3, W2', '')), ''),
t.gathers - t.forwards),
           printf('%d of %d all-gathers start out of the order of use', t.out_of_order, t.gathers)) AS "order",
       replace(t.first, '.weight', '') AS first, replace(t.last, '.weight', '') AS last,
       replace(t.back_first, '.weight', '') AS back_first, replace(t.back_last, '.weight', '') AS back_last,
       iif(t.most = 1, 'one unit', t.most || ' units') AS most,
       iif(v.params ->> '$.granularity' = 'layer' AND 2 * t.forwards - t.gathers = 3,
           ' Backward reuses the last two and needs no embeddings.', '') AS unit, v.run_uid
  FROM v
  JOIN told t USING (attempt_id)
 ORDER BY v.metrics ->> '$.parameters' DESC, batch, context,
          "precision" <> 'fp32', ranks, v.row_order, granularity DESC;
