-- sentence: {model} in {precision}, {batch} × {context} tokens on {ranks} ranks ({backend}, gradients {sent}, {device},
--   protocol {protocol}, {implementation}): a step takes {time_ms} ms, of which {exposed} ms ({share} %) is
--   communication: {buckets} all-reduces, {bytes} in all, after backward.{skew}
-- experiment: naive_ddp_benchmarking
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; sent|1|s|left; device|1|s|left; protocol|1|s|left; implementation|1|code|left;
--   time_ms|ms|.4g|right; n|1|d|right; bytes|GiB|.4b|right; buckets|1|d|right; exposed|ms|.3g|right;
--   share|%|ci(share_low, share_high)|right; none_ms|ms|.4g|right; skew|1|s|left
SELECT model, "precision", batch, context, ranks, backend,
       iif(wire = 'own', 'uncompressed', 'in ' || wire) AS sent, device, protocol, implementation, time_ms, v.n,
       gradient_bytes / 1073741824.0 AS bytes, buckets, exposed, 100 * exposed / time_ms AS share,
       1e5 * e.ci_low / high_ms AS share_low, 1e5 * e.ci_high / low_ms AS share_high, none_ms,
       -- Each rank waits in its first all-reduce for those whose backward pass ends later.
       CASE WHEN exposed > over_none_high AND over_none > 0
              THEN printf(' It lengthens the step by %.3g ms; the rest is waiting for the slower rank.', over_none)
            WHEN over_none > 0 THEN printf(' The step is %.3g ms longer than without it%s.', over_none,
              coalesce((SELECT printf('; of communication up to %.2g ms is waiting for the slower rank',
                                      1e3 * (max(m.value) - min(m.value)))
                          FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'exposed' AND m.rank >= 0
                        HAVING min(m.value) < max(m.value)), ''))
            ELSE '' END AS skew, run_uid
  FROM v_data_parallel v
  LEFT JOIN metric e ON e.attempt_id = v.attempt_id AND e.name = 'exposed' AND e.rank = -1
 WHERE experiment = ?1 AND strategy = 'naive' AND is_good AND none_ms IS NOT NULL
 ORDER BY model, batch, context, "precision", ranks, row_order, backend, wire <> 'own', wire;
