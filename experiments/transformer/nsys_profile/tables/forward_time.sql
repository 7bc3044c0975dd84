-- sentence: Forward of {model} (context {context}, {precision}, {implementation}, {device}) takes {busy} ms by the
--   profile ({source}, sum of kernels); the timing program (`benchmarking_script`) measures {timing}. {agreement}
--   {meaning}
-- experiment: nsys_profile
-- fills: a
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   busy|ms|ci(busy_low, busy_high)|right; source|1|s|left; timing|1|s|left; agreement|1|s|left; meaning|1|s|left;
--   clock|ms|ci(clock_low, clock_high)|right
WITH t AS (
  SELECT v.params, v.implementation, v.device, v.facts ->> '$.trace.source' AS source,
         v.run_uid, v.comparability_key, 1e3 * c.value AS clock,
         1e3 * c.ci_low AS clock_low, 1e3 * c.ci_high AS clock_high, 1e3 * b.value AS busy, 1e3 * b.ci_low AS busy_low,
         1e3 * b.ci_high AS busy_high,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                         v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'forward'
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'forward_busy'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
-- The timing program's forward pass of the same model: what it measured of the same mode, after the usual warm-up.
timed AS (
  SELECT json_remove(v.params, '$.warmup') AS point, v.implementation, v.comparability_key,
         1e3 * f.value AS ms, 1e3 * f.ci_low AS low, 1e3 * f.ci_high AS high,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.warmup'), v.implementation, v.comparability_key
                                ORDER BY v.protocol <> 'cs336', v.run_order DESC, v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forward'
   WHERE v.experiment = 'benchmarking_script' AND v.is_good AND v.params ->> '$.warmup' >= 5
),
-- The steps that were recorded are not those that were timed: the bounds take both medians' intervals at their worst.
shares AS (
  SELECT t.*, 100 * busy / clock AS share, 100 * busy_low / clock_high AS share_low,
         100 * busy_high / clock_low AS share_high, p.ms, p.low, p.high
    FROM t
    LEFT JOIN timed p ON p.point = t.params AND p.implementation = t.implementation
                     AND p.comparability_key = t.comparability_key AND p.place = 1
   WHERE t.place = 1
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device,
       clock, clock_low, clock_high, busy, busy_low, busy_high, source, share, share_low, share_high,
       iif(ms IS NULL, printf('nothing of it yet; by the profiled program''s own clock it takes %.4g ms', clock),
           printf('a median of %.4g ms', ms)) AS timing,
       CASE WHEN ms IS NULL
              THEN 'Agreement: not measured (`syslab run benchmarking_script` with the same model and context).'
            WHEN low IS NULL OR busy_low IS NULL THEN 'Too few samples to compare them.'
            WHEN busy_high < low
              THEN printf(iif(busy > 0.95 * ms, 'The profile is %.2g %% lower, so they agree.',
                              'The profile is %.2g %% lower.'), 100 * (1 - busy / ms))
            WHEN busy_low > high
              THEN printf(iif(busy < 1.05 * ms, 'The profile is %.2g %% higher, so they agree.',
                              'The profile is %.3g %% higher.'), 100 * (busy / ms - 1))
            ELSE 'They agree: no measurable difference.' END AS agreement,
       CASE WHEN share_low IS NULL THEN 'There are too few samples to separate launches and gaps from kernels.'
            WHEN share_high < 100
              THEN printf('By its own clock kernels fill %.3g %% of the pass; the rest is launches and gaps.', share)
            WHEN share_low <= 100 THEN 'Launches and gaps between kernels are not distinguishable from zero.'
            WHEN source = 'host clock'
              THEN 'Kernels add up to more than the clock: '
                   || 'the recorded steps were slower than the timed ones, by recording or other load.'
            ELSE 'Kernels add up to more than the clock: some overlap and count twice, '
                 || 'or the recorded steps were slower.' END AS meaning, ms IS NULL AS lacks, run_uid
  FROM shares
 ORDER BY device, implementation;
