-- sentence: Each pass alone was timed in {configurations} 80 configurations ({device}{elsewhere}). At {where}
--   {said}.{failed}
-- experiment: flash_benchmarking
-- fills: *
-- columns: configurations|1|s|left; device|1|s|left; elsewhere|1|s|left; where|1|s|left; said|1|s|left; failed|1|s|left
WITH every AS MATERIALIZED (
  SELECT v.*, coalesce(r.is_general AND r.device = 'cuda' AND r.tf32 = (v.params ->> '$.dtype' = 'fp32'), 0) AS is_shown
    FROM v_measured v
    LEFT JOIN v_rung r ON r.run_uid = v.run_uid AND r.experiment = v.experiment AND r.implementation = v.implementation
   WHERE v.experiment = ?1 AND v.measured_here AND NOT v.is_mine
),
m AS (SELECT * FROM every WHERE params ->> '$.pass' <> 'both' AND (is_good OR status = 'oom')),
pair AS (
  SELECT o.params ->> '$.seq' AS seq, o.params ->> '$.head_dim' AS head_dim,
         o.params ->> '$.dtype' AS dtype, o.params ->> '$.pass' AS pass, o.implementation,
         o.device, o.comparability_key, o.protocol, o.time_ms,
         iif(l.is_good, printf('%.3g', l.time_ms), 'OOM') AS unfused, o.run_uid
    FROM m o
    JOIN m l ON l.case_id = o.case_id AND l.comparability_key = o.comparability_key
            AND l.protocol = o.protocol AND l.role = 'literal'
   WHERE o.is_good AND o.is_shown
),
-- Configurations with forward and backward, one a dtype: the head dimension nearest to 64, there the longest T.
chosen AS (
  SELECT *, dense_rank() OVER (PARTITION BY comparability_key, protocol
                                   ORDER BY abs(head_dim - 64), head_dim, seq DESC) AS place
    FROM (SELECT *, count(*) OVER (PARTITION BY comparability_key, protocol, head_dim, seq, dtype) AS timed FROM pair)
   WHERE timed = 2
),
-- "`name` (bf16) takes 1.5 ms forward and 3.97 backward (unfused 54.8 and 60)"
told AS (
  SELECT comparability_key, protocol, head_dim, seq,
         printf('`%s` (%s)%s %.3g ms forward and %.3g backward (unfused %s and %s)', implementation, dtype,
                iif(row_number() OVER (PARTITION BY comparability_key, protocol ORDER BY dtype) = 1, ' takes', ''),
                max(iif(pass = 'forward', time_ms, NULL)), max(iif(pass = 'backward', time_ms, NULL)),
                max(iif(pass = 'forward', unfused, NULL)), max(iif(pass = 'backward', unfused, NULL))) AS text
    FROM chosen
   WHERE place = 1
   GROUP BY comparability_key, protocol, head_dim, seq, dtype, implementation
   ORDER BY dtype
),
-- Of each kind of GPU the machine and the protocol, or the version of one, under which most was measured.
counted AS (
  SELECT row_number() OVER (PARTITION BY device ORDER BY count(*) DESC, protocol DESC, comparability_key) AS nth,
         comparability_key, protocol, device, max(run_uid) AS run_uid,
         (SELECT count(DISTINCT x.head_dim || ' ' || x.seq || ' ' || x.dtype) FROM chosen x
           WHERE x.device = c.device AND x.protocol = c.protocol) AS timed
    FROM chosen c
   GROUP BY comparability_key, protocol, device
)
SELECT iif(g.timed = 80, 'all', g.timed || ' of') AS configurations, g.device,
       -- Then what forward and backward add up to is not to be held against the table's times of both.
       iif(g.comparability_key = coalesce((SELECT b.comparability_key FROM every b
                                            WHERE b.params ->> '$.pass' = 'both' AND b.is_good AND b.is_shown
                                            GROUP BY b.comparability_key, b.protocol
                                            ORDER BY count(*) DESC, b.comparability_key LIMIT 1), g.comparability_key),
           '', ', on a second machine') AS elsewhere,
       printf('T = %d, d = %d', t.seq, t.head_dim) AS "where", group_concat(t.text, ', ') AS said,
       coalesce((SELECT printf(' `%s` failed its check in %s (%s), left out here.', f.implementation,
                               iif(count(DISTINCT f.params) = 1, 'one case', count(DISTINCT f.params) || ' cases'),
                               replace(replace(f.device, 'NVIDIA ', ''), ' 80GB HBM3', ''))
                   FROM every f
                  WHERE f.status = 'check_failed' AND f.is_shown
                        -- What has passed since is mended.
                    AND NOT EXISTS (SELECT 1 FROM every n
                                     WHERE n.case_id = f.case_id AND n.implementation = f.implementation
                                       AND n.is_good AND n.run_uid > f.run_uid)
                  GROUP BY f.implementation, f.device
                  ORDER BY count(*) DESC, f.implementation, f.device LIMIT 1), '') AS failed, g.run_uid
  FROM counted g
  JOIN told t ON t.comparability_key = g.comparability_key AND t.protocol = g.protocol
 WHERE g.nth = 1
 GROUP BY g.comparability_key, g.protocol
 ORDER BY g.timed DESC, g.device, g.protocol;
