-- title: Memory bandwidth ceiling
-- caption: Median time of one copy with its 95 % interval. The rate counts bytes read and written.
-- about side_over_cache: From `side / cache` = 4 on it is the memory's.
-- experiment: ceiling_copy
-- columns: bytes|B|d|right; side_over_cache as side / cache|1|.2g|right; @timed; gbps as rate|GB/s|.3g|right;
--   vs_peer as vs baseline|×|ci(vs_peer_low, vs_peer_high)|right; peer as baseline|1|code|left;
--   vs_from as speed-up from?|1|s|left; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left;
--   status|1|status|left
-- note: A store that misses the cache reads its line first unless it is non-temporal; that read is not counted
--   (STREAM), so `streaming` may show up to 1.5 times the rate.
SELECT params ->> '$.bytes' AS bytes,
       (params ->> '$.bytes') / (facts ->> '$.last_level_cache_bytes' * 1.0) AS side_over_cache,
       implementation, time_ms, low_ms, high_ms, gbps, vs_peer, vs_peer_low, vs_peer_high,
       vs_from, coalesce(peer, '–') AS peer, n, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY bytes, row_order;
