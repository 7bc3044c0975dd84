-- title: What kernels take of a multiprocessor
-- caption: Of the first call of each case: registers of a thread when it starts, shared memory of a block, bytes of a
--   thread that found no register, how many blocks a multiprocessor holds at a time, and the share of its threads that
--   they are. Kernels that share registers out anew among their warps show what they start with.
-- experiment: *
-- empty: No kernel of ours ran on a GPU.
-- columns: implementation|1|code|left; kernel|1|s|left; head_dim?|1|s|left; dtype?|1|s|left; threads|1|d|right;
--   registers|1|d|right; shared_kib as shared memory|KiB|.4g|right; local_bytes as local memory|B|d|right;
--   blocks as blocks a multiprocessor|1|d|right; occupancy|%|.3g|right; device?|1|s|left
WITH kernels AS (
  SELECT v.implementation, k.value ->> '$.name' AS kernel,
         v.params ->> '$.head_dim' AS head_dim, v.params ->> '$.dtype' AS dtype,
         k.value ->> '$.threads' AS threads, k.value ->> '$.registers' AS registers,
         (k.value ->> '$.shared_bytes') / 1024.0 AS shared_kib,
         k.value ->> '$.local_bytes' AS local_bytes, k.value ->> '$.blocks' AS blocks,
         100 * (k.value ->> '$.occupancy') AS occupancy, v.device, v.run_uid, v.row_order
    FROM v_measured v, json_each(v.facts, '$.kernels') k
   WHERE v.experiment = ?1 AND v.is_good AND v.role IS NOT 'reference'
)
-- A row for each way in which a kernel was compiled and launched, whatever the sizes of the cases that it was for.
SELECT implementation, kernel,
       (SELECT group_concat(head_dim, ', ')
          FROM (SELECT DISTINCT x.head_dim FROM kernels x
                 WHERE (x.implementation, x.kernel, x.threads, x.registers,
                        x.shared_kib, x.local_bytes, x.blocks, x.device)
                     = (y.implementation, y.kernel, y.threads, y.registers,
                        y.shared_kib, y.local_bytes, y.blocks, y.device)
                 ORDER BY x.head_dim)) AS head_dim,
       (SELECT group_concat(dtype, ', ')
          FROM (SELECT DISTINCT x.dtype FROM kernels x
                 WHERE (x.implementation, x.kernel, x.threads, x.registers,
                        x.shared_kib, x.local_bytes, x.blocks, x.device)
                     = (y.implementation, y.kernel, y.threads, y.registers,
                        y.shared_kib, y.local_bytes, y.blocks, y.device)
                 ORDER BY x.dtype)) AS dtype,
       threads, registers, shared_kib, local_bytes, blocks, occupancy, device, max(run_uid) AS run_uid
  FROM kernels y
 GROUP BY implementation, kernel, threads, registers, shared_kib, local_bytes, blocks, device
 ORDER BY device, implementation, kernel, min(head_dim), threads, shared_kib, registers;
