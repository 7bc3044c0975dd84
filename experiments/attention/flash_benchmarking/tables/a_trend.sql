-- sentence: Speed-ups of forward + backward over unfused attention at d = {head_dim}: {speedups} ({pairing}, {device}).
--   {growth}: unfused attention writes and reads T² scores, these keep tiles of up to {tile} on chip in forward{short}.
-- experiment: flash_benchmarking
-- with: flash_benchmarking/speedup
-- fills: *
-- columns: head_dim|1|d|right; speedups|1|s|left; pairing|1|s|left; device|1|s|left; growth|1|s|left; tile|1|s|left;
--   short|1|s|left
longest AS (  -- only what has facts, and so a tile to name: no peers, nothing that came by merge
  SELECT e.*, r.facts, r.is_general AND NOT r.tf32 AS is_shown
    FROM ends e
    JOIN v_rung r ON r.run_uid = e.run_uid AND r.experiment = ?1 AND r.implementation = e.implementation
   WHERE place = 1 AND seq > low_seq AND NOT is_mine AND speedup > at_low
),
-- Of each, the tile for its head dimension: queries × keys, and their product.
tiles AS (
  SELECT l.comparability_key, l.protocol, l.point ->> '$.head_dim' AS head_dim, j.value AS tile,
         CAST(j.value AS INTEGER) * CAST(substr(j.value, instr(j.value, '×') + 1) AS INTEGER) AS area,
         row_number() OVER (PARTITION BY l.comparability_key, l.protocol, l.point, l.implementation
                                ORDER BY CAST(substr(j.key, 14) AS INTEGER)) AS nth
    FROM longest l
    JOIN json_each(l.facts) j ON j.key GLOB 'forward_tile*'
     AND (j.key = 'forward_tile' OR CAST(substr(j.key, 14) AS INTEGER) >= l.point ->> '$.head_dim')
),
-- Lengths are said once where all of a sentence have the same.
wide AS (
  SELECT *, max(iif(point ->> '$.head_dim' = 64, 1, 0)) OVER () AS has_64,
         row_number() OVER (same ORDER BY implementation) = 1
           OR low_seq <> lag(low_seq) OVER (same ORDER BY implementation)
           OR seq <> lag(seq) OVER (same ORDER BY implementation) AS says_where
    FROM longest
  WINDOW same AS (PARTITION BY comparability_key, protocol, point ->> '$.head_dim')
)
SELECT point ->> '$.head_dim' AS head_dim,
       group_concat(printf('`%s` (%s) %.3g×%s and %.3g×%s', implementation, point ->> '$.dtype',
                           at_low, iif(says_where, ' at T = ' || low_seq, ''), speedup,
                           iif(says_where, ' at T = ' || seq, '')), ', ') AS speedups,
       iif(min(paired AND low_paired), 'one run each', 'in different runs') AS pairing, device,
       CASE WHEN (SELECT count(DISTINCT x.device) FROM wide x
                   WHERE x.point ->> '$.head_dim' = w.point ->> '$.head_dim') = 1 THEN 'They are larger at long T'
            ELSE 'On each GPU they are larger at long T' END AS growth,
       (SELECT t.tile FROM tiles t
         WHERE t.nth = 1 AND t.comparability_key = w.comparability_key AND t.protocol = w.protocol
           AND t.head_dim = w.point ->> '$.head_dim'
         ORDER BY t.area DESC LIMIT 1) AS tile,
       -- Times that hardly follow the work.
       coalesce((SELECT printf('. At short T both are probably bound by launches (not measured): from T = %d to %d '
                               || '(%s, d = %d) 16 times the scores take %#.3g times as long unfused, %#.3g fused',
                               a.seq, b.seq, a.point ->> '$.dtype', a.point ->> '$.head_dim',
                               b.speedup * b.time_ms / (a.speedup * a.time_ms), b.time_ms / a.time_ms)
                   FROM beside a
                   JOIN beside b ON b.point = a.point AND b.implementation = a.implementation
                                AND b.is_mine = a.is_mine AND b.comparability_key = a.comparability_key
                                AND b.protocol = a.protocol AND b.seq = 4 * a.seq
                  WHERE a.comparability_key = w.comparability_key AND a.protocol = w.protocol AND NOT a.is_mine
                    AND a.implementation IN (SELECT x.implementation FROM longest x WHERE x.is_shown)
                    AND b.time_ms < 1.5 * a.time_ms AND b.speedup * b.time_ms < 1.5 * a.speedup * a.time_ms
                  ORDER BY a.seq, abs((a.point ->> '$.head_dim') - 64) LIMIT 1), '') AS short,
       max(run_uid) AS run_uid
  FROM (SELECT * FROM wide ORDER BY implementation) w
 WHERE has_64 = 0 OR point ->> '$.head_dim' = 64
 GROUP BY comparability_key, protocol, point ->> '$.head_dim'
HAVING tile IS NOT NULL
 ORDER BY device, protocol;
