-- figure: stacks
-- title: Profiling: kernel time by kind
-- caption: Share of each kind of kernel in the summed kernel time of a phase and of the whole step; per panel the
--   newest training step of the largest batch.
-- experiment: nsys_profile
-- x: phase|1|text
-- y: share|%|linear
-- series: kind
-- panel: model, context, precision, implementation, device
-- fills: b
WITH chosen AS (
  SELECT v.attempt_id, p.value AS parameters,
         row_number() OVER (PARTITION BY v.device, v.implementation, v.params ->> '$.model',
                                         v.params ->> '$.context', v.params ->> '$.precision'
                                ORDER BY v.params ->> '$.mode' = 'train' DESC, v.params ->> '$.batch' DESC,
                                         p.value DESC, v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
t AS (
  SELECT k.*, c.parameters
    FROM v_kernel k
    JOIN chosen c ON c.attempt_id = k.attempt_id AND c.place = 1
)
SELECT iif(phase = '', 'step', phase) AS phase, sum(share) AS share, kind,
       params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device, 'ok' AS status, run_uid
  FROM t
 GROUP BY attempt_id, phase, kind
 ORDER BY parameters DESC, context DESC, precision, implementation, device,
          CASE phase WHEN 'forward' THEN 0 WHEN 'backward' THEN 1 WHEN 'optimizer' THEN 2 ELSE 3 END,
          CASE kind WHEN 'matrix products' THEN 0 WHEN 'softmax' THEN 1 WHEN 'attention besides' THEN 2
                    WHEN 'norm, SwiGLU, RoPE, casts' THEN 3 WHEN 'optimizer' THEN 4 ELSE 5 END;
