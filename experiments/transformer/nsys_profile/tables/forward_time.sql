-- sentence: A forward pass of {model} (context {context}, {precision}, {implementation}, {device}) takes {clock} ms by the clock, waited for
--   before and after, and {busy} ms by the sum of its kernels, recorded by {source}: {share} % of the clock's time. {meaning}
-- experiment: nsys_profile
-- fills: a
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   clock|ms|ci(clock_low, clock_high)|right; busy|ms|ci(busy_low, busy_high)|right; source|1|s|left;
--   share|%|ci(share_low, share_high)|right; meaning|1|s|left
WITH t AS (
  SELECT v.params, v.implementation, v.device, v.facts ->> '$.trace.source' AS source, v.run_uid, 1e3 * c.value AS clock,
         1e3 * c.ci_low AS clock_low, 1e3 * c.ci_high AS clock_high, 1e3 * b.value AS busy, 1e3 * b.ci_low AS busy_low,
         1e3 * b.ci_high AS busy_high,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value DESC, v.params ->> '$.context' DESC, v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric c ON c.attempt_id = v.attempt_id AND c.name = 'forward'
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'forward_busy'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
-- The steps that were recorded are not those that were timed: the bounds take both medians' intervals at their worst.
shares AS (
  SELECT *, 100 * busy / clock AS share, 100 * busy_low / clock_high AS share_low, 100 * busy_high / clock_low AS share_high
    FROM t
   WHERE place = 1
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS precision, implementation, device,
       clock, clock_low, clock_high, busy, busy_low, busy_high, source, share, share_low, share_high,
       CASE WHEN share_low IS NULL
              THEN 'Without an interval nothing can be said of launches and gaps between kernels.'
            WHEN share_high < 100
              THEN printf('What is left, %.3g %% to %.3g %%, are launches and gaps between kernels.', 100 - share_high, 100 - share_low)
            WHEN share_low <= 100
              THEN '100 % is within that interval: at this noise nothing can be said of launches and gaps between kernels.'
            WHEN source = 'host clock'
              THEN 'More than all of it: calls do not overlap here, so the steps that were recorded took longer than those that were timed, '
                   || 'for being recorded or for other work on the machine; of gaps nothing can be said.'
            ELSE 'More than all of it: kernels that overlap count twice, or the steps that were recorded took longer than those that were '
                 || 'timed; of gaps nothing can be said.' END AS meaning, run_uid
  FROM shares
 ORDER BY device, implementation;
