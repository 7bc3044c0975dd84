-- sentence: Profiling overhead {verdict} (step of {model}, context {context}, {precision}, {implementation}, {device}:
--   {recorded} ms recorded, {plain} ms not).
-- experiment: nsys_profile
-- columns: verdict|1|s|left; model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left;
--   device|1|s|left; recorded|ms|ci(recorded_low, recorded_high)|right; plain|ms|ci(plain_low, plain_high)|right
WITH t AS (
  SELECT v.params, v.implementation, v.device, v.run_uid,
         100 * o.value AS cost, 100 * o.ci_low AS low, 100 * o.ci_high AS high,
         1e3 * r.value AS recorded, 1e3 * r.ci_low AS recorded_low,
         1e3 * r.ci_high AS recorded_high, 1e3 * s.value AS plain,
         1e3 * s.ci_low AS plain_low, 1e3 * s.ci_high AS plain_high,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                         v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric o ON o.attempt_id = v.attempt_id AND o.name = 'recording_overhead'
    JOIN metric r ON r.attempt_id = v.attempt_id AND r.name = 'step_recorded'
    JOIN metric s ON s.attempt_id = v.attempt_id AND s.name = 'step_plain'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT CASE WHEN low IS NULL THEN printf('is %+.3g %%, from too few samples for an interval', cost)
            WHEN low <= 0 AND high >= 0 THEN printf('is below %.3g %%, not distinguishable from zero', high)
            WHEN low > 0 THEN printf('is %.3g %% (%.3g to %.3g %%)', cost, low, high)
            -- Recording takes time: a step that is faster for it was measured while the machine did less.
            ELSE printf('cannot be given: recorded steps were %.3g %% faster (%.3g to %.3g %%), '
                        || 'so other load slowed the unrecorded ones', -cost, -high, -low)
            END AS verdict,
       params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device,
       recorded, recorded_low, recorded_high, plain, plain_low, plain_high, run_uid
  FROM t
 WHERE place = 1
 ORDER BY device, implementation;
