-- sentence: {model} in {precision}, {batch} × {context} tokens on {ranks} ranks ({backend}, gradients {sent}, {device},
--   protocol {protocol}, {implementation}): bucket limits from {least} to {most} MiB make {calls}{handout}. A step
--   takes {times} ms at {limits} MiB{verdict}{elsewhere}. {cost}.
-- experiment: ddp_bucketed_benchmarking
-- fills: a
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; sent|1|s|left; device|1|s|left; protocol|1|s|left; implementation|1|code|left;
--   least|MiB|d|right; most|MiB|d|right; calls|1|s|left; handout|1|s|left; times|1|s|left; limits|1|s|left;
--   verdict|1|s|left; cost|1|s|left; elsewhere|1|s|left
WITH RECURSIVE sizes(model, d, f, layers, vocab) AS (
  -- The hand-out's models: its buckets are packed in reverse registration order (lm_head, ln_final, of each layer ln2,
  -- ln1, w3, w2, w1, output, v, k, q, embedding), ours in the order in which backward finishes gradients, where two
  -- norms are never neighbours.
  VALUES ('small', 768, 3072, 12, 10000), ('medium', 1024, 4096, 24, 10000),
         ('large', 1280, 5120, 36, 10000), ('xl25', 1600, 6400, 48, 10000),
         ('xl26', 2560, 10240, 32, 10000)
),
asked AS (  -- the smallest limit of each model that was run
  SELECT s.model, s.d, s.f, s.layers, s.vocab, l."limit", l.element
    FROM sizes s
    JOIN (SELECT model, min(bucket_mb) AS "limit", iif(wire = 'own', 4, 2) AS element
            FROM v_data_parallel
           WHERE experiment = ?1 AND strategy = 'bucketed' AND is_good
             AND coalesce(params ->> '$.d_model', 0) + coalesce(params ->> '$.d_ff', 0)
                   + coalesce(params ->> '$.layers', 0) + coalesce(params ->> '$.vocab', 0) = 0
           GROUP BY model, wire <> 'own') l USING (model)
),
tensors AS (
  SELECT model, element, "limit", 9 * layers + 3 AS count, layers, d * element AS norm,
         d * d * element AS square, d * f * element AS wide, vocab * d * element AS table_bytes
    FROM asked
),
packed(model, element, "limit", tensor, fill, buckets) AS (
  SELECT model, element, "limit", 1, table_bytes, 1 FROM tensors
   UNION ALL
  SELECT p.model, p.element, p."limit", p.tensor + 1,
         iif(p.fill + b.bytes <= 1048576 * p."limit", p.fill + b.bytes, b.bytes),
         p.buckets + (p.fill + b.bytes > 1048576 * p."limit")
    FROM packed p
    JOIN (SELECT model, element, count, n.column1 AS place,
                 CASE n.column1 WHEN 'norm' THEN norm WHEN 'wide' THEN wide WHEN 'table' THEN table_bytes
                                ELSE square END AS bytes
            FROM tensors CROSS JOIN (VALUES ('norm'), ('wide'), ('table'), ('square')) n) b
      ON b.model = p.model AND b.element = p.element AND p.tensor < b.count
     AND b.place = CASE WHEN p.tensor + 1 = b.count THEN 'table' WHEN p.tensor = 1 THEN 'norm'
                        WHEN (p.tensor - 2) % 9 < 2 THEN 'norm'
                        WHEN (p.tensor - 2) % 9 < 5 THEN 'wide' ELSE 'square' END
),
handout AS (
  SELECT p.model, p.element, p."limit", p.buckets
    FROM packed p
    JOIN tensors t ON t.model = p.model AND t.element = p.element AND p.tensor = t.count
),
one AS (
  SELECT *, row_number() OVER here AS up, row_number() OVER there AS down, min(bucket_mb) OVER same AS least,
         max(bucket_mb) OVER same AS most, max(buckets) OVER same AS most_calls, min(buckets) OVER same AS least_calls
    FROM v_data_parallel
   WHERE experiment = ?1 AND strategy = 'bucketed' AND is_good
  WINDOW same AS (PARTITION BY point, ranks, comparability_key, protocol, implementation),
         here AS (same ORDER BY time_ms, bucket_mb), there AS (same ORDER BY time_ms DESC, bucket_mb)
)
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend,
       iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS sent,
       v.device, v.protocol, v.implementation, v.least, v.most,
       CASE WHEN v.most_calls > v.least_calls THEN printf('%d to %d all-reduces', v.most_calls, v.least_calls)
            WHEN v.most_calls = 1 THEN 'one all-reduce each'
            ELSE printf('%d all-reduces each', v.most_calls) END AS calls,
       (SELECT group_concat(printf('%.4g', x.time_ms), ', ')
          FROM (SELECT * FROM one o
                 WHERE o.point = v.point AND o.ranks = v.ranks AND o.comparability_key = v.comparability_key
                   AND o.protocol IS v.protocol AND o.implementation = v.implementation
                 ORDER BY o.bucket_mb) x) AS times,
       (SELECT group_concat(x.bucket_mb, ', ')
          FROM (SELECT * FROM one o
                 WHERE o.point = v.point AND o.ranks = v.ranks AND o.comparability_key = v.comparability_key
                   AND o.protocol IS v.protocol AND o.implementation = v.implementation
                 ORDER BY o.bucket_mb) x) AS limits,
       iif(v.high_ms < w.low_ms, '', ', no measurable difference') AS verdict,
       CASE WHEN h.buckets IS NULL THEN '' WHEN h.buckets = v.most_calls THEN ' in reverse registration order'
            ELSE printf(' (%d at %d MiB by the hand-out''s reverse registration order)',
                        h.buckets, v.least) END AS handout,
       CASE WHEN g.exposed > s.exposed
              THEN printf('As expected large buckets delay the last all-reduce, '
                          || 'of which %s ms are exposed at %d MiB and %s at %d',
                          iif(g.exposed >= 99.5, printf('%.0f', g.exposed), printf('%.2g', g.exposed)), g.bucket_mb,
                          iif(s.exposed >= 99.5, printf('%.0f', s.exposed), printf('%.2g', s.exposed)), s.bucket_mb)
            ELSE printf('One would expect large buckets to delay the last all-reduce, '
                        || 'but %s ms are exposed at %d MiB and %s at %d',
                        iif(g.exposed >= 99.5, printf('%.0f', g.exposed), printf('%.2g', g.exposed)), g.bucket_mb,
                        iif(s.exposed >= 99.5, printf('%.0f', s.exposed), printf('%.2g', s.exposed)), s.bucket_mb) END
         || CASE WHEN s.over_none IS NULL OR g.over_none IS NULL THEN ''
                 WHEN s.over_none > g.over_none
                   THEN printf('. %s small ones cost more: '
                               || 'a step is %s ms over one without communication at %d MiB and %s at %d%s',
                               iif(g.exposed > s.exposed, 'But many', 'Many'),
                               iif(s.over_none >= 99.5, printf('%.0f', s.over_none), printf('%.2g', s.over_none)),
                               s.bucket_mb,
                               iif(g.over_none >= 99.5, printf('%.0f', g.over_none), printf('%.2g', g.over_none)),
                               g.bucket_mb,
                               iif(s.backward > 1.01 * g.backward,
                                   printf(', since backward takes %.3g and %.3g ms', s.backward, g.backward), ''))
                 ELSE printf('; a step is %s ms over one without communication at %d MiB and %s at %d',
                             iif(s.over_none >= 99.5, printf('%.0f', s.over_none), printf('%.2g', s.over_none)),
                             s.bucket_mb,
                             iif(g.over_none >= 99.5, printf('%.0f', g.over_none), printf('%.2g', g.over_none)),
                             g.bucket_mb) END AS cost,
       coalesce((SELECT '; on another machine, so not comparable, '
                          || group_concat(printf('%.4g ms at %d MiB in %d all-reduces (%s)',
                                                 o.time_ms, o.bucket_mb, o.buckets,
                                                 replace(replace(o.device, 'NVIDIA ', ''), ' 80GB HBM3', '')), ', ')
                   FROM one o
                  WHERE o.point = v.point AND o.ranks = v.ranks
                    AND o.comparability_key <> v.comparability_key AND o.implementation = v.implementation
                    AND o.gpu_name IS NOT NULL AND v.gpu_name IS NOT NULL
                    AND o.bucket_mb NOT IN (SELECT x.bucket_mb FROM one x
                                             WHERE x.point = v.point AND x.comparability_key = v.comparability_key)),
                '') AS elsewhere, v.run_uid
  FROM one v
  JOIN one w ON w.point = v.point AND w.ranks = v.ranks
            AND w.comparability_key = v.comparability_key AND w.protocol IS v.protocol
            AND w.implementation = v.implementation AND w.down = 1
 JOIN one s ON s.point = v.point AND s.ranks = v.ranks
           AND s.comparability_key = v.comparability_key AND s.protocol IS v.protocol
           AND s.implementation = v.implementation AND s.bucket_mb = v.least
 JOIN one g ON g.point = v.point AND g.ranks = v.ranks
           AND g.comparability_key = v.comparability_key AND g.protocol IS v.protocol
           AND g.implementation = v.implementation AND g.bucket_mb = v.most
 LEFT JOIN handout h ON h.model = v.model AND h.element = iif(v.wire = 'own', 4, 2) AND h."limit" = v.least
 WHERE v.up = 1 AND v.bucket_mb <> w.bucket_mb
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.backend, v.wire <> 'own', v.wire;
