-- sentence: A forward pass of {model} (context {context}, {precision}, {implementation}, {device}) takes {clock} ms by the clock, waited for
--   before and after, and {busy} ms by the sum of its kernels, recorded by {source}: {share} % of the clock's time. What is left are launches
--   and gaps between kernels; steps that were recorded are not those that were timed.
-- experiment: nsys_profile
-- fills: a
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; clock|ms|.4g|right;
--   busy|ms|.4g|right; source|1|s|left; share|%|.3g|right
WITH t AS (
  SELECT v.params, v.implementation, v.device, v.facts ->> '$.trace.source' AS source, v.run_uid, c.value AS clock, b.value AS busy,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value DESC, v.params ->> '$.context' DESC, v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'forward_mean'
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'forward_busy'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS precision, implementation, device,
       1e3 * clock AS clock, 1e3 * busy AS busy, source, 100 * busy / clock AS share, run_uid
  FROM t
 WHERE place = 1
 ORDER BY device, implementation;
