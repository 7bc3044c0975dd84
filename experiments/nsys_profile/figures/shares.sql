-- figure: stacks
-- title: Where the time of a phase goes
-- caption: Kernels of each phase and of the whole step, by what they do, in percent of their summed time.
-- experiment: nsys_profile
-- x: phase|1|text
-- y: share|%|linear
-- series: kind
-- panel: model, context, precision, implementation, device
-- fills: b
WITH t AS (
  SELECT k.*, p.value AS parameters
    FROM v_kernel k
    JOIN metric p ON p.attempt_id = k.attempt_id AND p.name = 'parameters'
   WHERE k.experiment = ?1 AND k.is_good
)
SELECT iif(phase = '', 'step', phase) AS phase, sum(share) AS share, kind, params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device, 'ok' AS status, run_uid
  FROM t
 GROUP BY attempt_id, phase, kind
 ORDER BY parameters DESC, context DESC, precision, implementation,
          CASE phase WHEN 'forward' THEN 0 WHEN 'backward' THEN 1 WHEN 'optimizer' THEN 2 ELSE 3 END,
          CASE kind WHEN 'matrix products' THEN 0 WHEN 'softmax' THEN 1 WHEN 'attention besides' THEN 2
                    WHEN 'norm, SwiGLU, RoPE, casts' THEN 3 WHEN 'optimizer' THEN 4 ELSE 5 END;
