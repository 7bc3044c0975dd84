-- sentence: Fusing by hand stands in for the compiler: with a fused softmax ({softmax}, {device}; the times after → in
--   the table of `pytorch_attention`) attention is {least} to {most} times as fast at {points} points up to
--   T = {longest}, since it touches the scores once, not once per operation.
-- experiment: torch_compile
-- command: syslab run pytorch_attention --preset paper
-- fills: a
-- columns: softmax|1|code|left; least|1|.3g|right; most|1|.3g|right; points|1|d|right;
--   longest|1|d|right; device|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.* FROM v_measured v
   WHERE v.experiment = 'pytorch_attention' AND v.is_good AND NOT v.is_mine
     AND v.params ->> '$.pass' IN ('forward', 'backward')
),
pair AS (
  SELECT l.device, l.comparability_key, l.protocol, l.implementation AS literal,
         s.implementation AS softmax, l.params ->> '$.head_dim' AS d,
         l.params ->> '$.seq' AS seq, l.params ->> '$.pass' AS pass,
         l.time_ms / s.time_ms AS gain, max(l.run_uid, s.run_uid) AS run_uid
    FROM t l
    JOIN t s ON s.case_id = l.case_id AND s.comparability_key = l.comparability_key AND s.protocol = l.protocol
            AND s.implementation = CASE l.implementation WHEN 'literal' THEN 'fused_softmax' ELSE 'naive_cuda' END
   WHERE l.role = 'literal' AND l.measured_here AND l.protocol NOT LIKE 'graph%'
)
SELECT literal, softmax, min(gain) AS least, max(gain) AS most, count(DISTINCT d || '|' || seq) AS points,
       max(seq) AS longest,
       (SELECT printf('%.3g×', x.gain) FROM pair x
         WHERE x.comparability_key = p.comparability_key AND x.protocol = p.protocol AND x.pass = 'forward'
         ORDER BY x.seq DESC, x.d DESC LIMIT 1) AS forward,
       (SELECT printf('%.3g×', x.gain) FROM pair x
         WHERE x.comparability_key = p.comparability_key AND x.protocol = p.protocol AND x.pass = 'backward'
         ORDER BY x.seq DESC, x.d DESC LIMIT 1) AS backward, device, max(run_uid) AS run_uid
  FROM pair p
 GROUP BY comparability_key, protocol, literal
 ORDER BY device LIKE 'NVIDIA%' DESC, device, protocol;
