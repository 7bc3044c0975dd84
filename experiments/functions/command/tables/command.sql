-- title: Programs
-- caption: Median time of one process, or the time that it prints, with its 95 % interval.
-- experiment: command
-- columns: case_name as case|1|s|left; @timed; reads|1|code|left;
--   vs_peer as vs reference|×|ci(vs_peer_low, vs_peer_high)|right; @checked
-- note: Of a rate the time is that of one of its units.
SELECT coalesce((SELECT group_concat(key || '=' || value, ' ') FROM json_each(params)
                  WHERE key <> 'reads'), 'all') AS case_name,
       params ->> '$.reads' AS reads, implementation, time_ms, low_ms, high_ms,
       vs_peer, vs_peer_low, vs_peer_high, worst_error, bound, scratch, n,
       checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY row_order, reads;
