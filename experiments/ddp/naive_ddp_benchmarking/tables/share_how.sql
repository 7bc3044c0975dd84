-- sentence: All are medians of {n} steps after 5 of warm-up.
-- experiment: naive_ddp_benchmarking
-- fills: *
-- columns: n|1|d|right
SELECT max(n) AS n, max(run_uid) AS run_uid
  FROM v_data_parallel
 WHERE experiment = ?1 AND strategy = 'naive' AND is_good AND backend = 'nccl'
HAVING count(*) > 0;
