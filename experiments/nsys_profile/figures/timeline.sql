-- figure: lanes
-- title: One step in time
-- caption: A recorded step of each implementation, from its beginning: phases, layers and their parts, calls of operators as the host made
--   them, and, on a GPU, what its streams ran.
-- experiment: nsys_profile
-- x: time|ms|linear
-- y: lane|1|text
-- end: until
-- series: kind
-- panel: model, context, precision, implementation, device
-- fills: b
-- note: The same with names, to be zoomed: `syslab query "SELECT content FROM artifact WHERE kind = 'timeline' ORDER BY id DESC LIMIT 1" --to raw -o
--   step.json`, which ui.perfetto.dev opens.
WITH chosen AS (
  SELECT v.attempt_id, v.params, v.implementation, v.device, v.run_uid,
         row_number() OVER (PARTITION BY v.device, v.implementation
                                ORDER BY p.value, v.params ->> '$.context', v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT 1e-6 * s.start_ns AS time, 1e-6 * s.end_ns AS until,
       CASE WHEN s.track <> 'host' THEN s.track WHEN s.category = 'kernel' THEN 'calls' WHEN s.category = 'part' THEN 'parts'
            WHEN s.category = 'layer' THEN 'layers' ELSE 'phases' END AS lane,
       CASE WHEN s.name = 'forward' OR s.name LIKE 'layers.%' AND s.category = 'layer' AND
                 CAST(substr(s.name, 8) AS INTEGER) % 2 = 0 THEN 'forward; even layers'
            WHEN s.name = 'backward' OR s.category = 'layer' THEN 'backward; odd layers'
            WHEN s.name = 'gemm' OR s.name LIKE '%.gemm' THEN 'matrix products'
            WHEN s.name LIKE 'attention%' OR s.name = 'attn' THEN 'attention'
            WHEN s.name IN ('optimizer', 'adamw', 'global_norm', 'clip') THEN 'optimizer'
            ELSE 'other' END AS kind,
       c.params ->> '$.model' AS model, c.params ->> '$.context' AS context, c.params ->> '$.precision' AS precision, c.implementation,
       c.device, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN span s ON s.attempt_id = c.attempt_id AND s.category <> 'scope'
 WHERE c.place = 1
 ORDER BY c.implementation, CASE lane WHEN 'phases' THEN 0 WHEN 'layers' THEN 1 WHEN 'parts' THEN 2 WHEN 'calls' THEN 3 ELSE 4 END, s.track,
          CASE kind WHEN 'forward; even layers' THEN 0 WHEN 'backward; odd layers' THEN 1 WHEN 'matrix products' THEN 2
                    WHEN 'attention' THEN 3 WHEN 'optimizer' THEN 4 ELSE 5 END, s.start_ns;
