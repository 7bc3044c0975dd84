-- sentence: With s bytes of gradients in n buckets, a link of w bytes a second and o seconds a call, and a bucket's gradients computed in the time in
--   which it travels: the first starts after s/(n·w), each takes s/(n·w) + o, and the backward pass ends at s/w, so that s/(n·w) + n·o is exposed; least at
--   n = √(s/(w·o)), buckets of √(s·w·o) bytes, where 2·√(s·o/w) is left. By the measured law of {law} on {ranks} ranks ({device}, back to back), o = {o} µs and
--   w = {w} GB/s: for the {s} of gradients of {model} ({sent}), n = {n} buckets of {best} expose least, {left} ms.
-- experiment: ddp_bucketed_benchmarking
-- fills: b
-- command: syslab run distributed_communication_single_node {experiment}
-- columns: law|1|code|left; ranks|1|d|right; device|1|s|left; o|µs|.3g|right; w|GB/s|.3g|right; s|GiB|.4b|right; model|1|s|left; sent|1|s|left; n|1|.3g|right;
--   best|GiB|.3b|right; left|ms|.3g|right
SELECT DISTINCT l.implementation AS law, v.ranks, v.device, 1e6 * l.alpha AS o, 1e-9 / l.per_byte AS w, v.gradient_bytes / 1073741824.0 AS s, v.model, v.sent,
       sqrt(v.gradient_bytes * l.per_byte / l.alpha) AS n, sqrt(v.gradient_bytes * l.alpha / l.per_byte) / 1073741824 AS best,
       2e3 * sqrt(v.gradient_bytes * l.per_byte * l.alpha) AS left, v.run_uid
  FROM v_data_parallel v
  JOIN v_transfer_law l ON l.operation = 'all_reduce' AND l.series = 'pipelined' AND l.ranks = v.ranks
                       AND l.comparability_key = v.comparability_key AND l.implementation = v.backend
 WHERE v.experiment = ?1 AND v.strategy = 'bucketed' AND v.is_good AND l.alpha > 0
 GROUP BY v.model, v.gradient_bytes, v.sent, v.ranks, v.device, l.implementation
 ORDER BY v.device, v.model, v.ranks, v.wire <> 'own', v.wire;
