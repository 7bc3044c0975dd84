-- title: FlashAttention-2 forward pass
-- caption: Median time of one call with its 95 % interval.
-- about vs_naive: `vs naive` is the speed-up over the kernel that materialises the scores, on the same inputs.
-- experiment: flash_forward
-- fills: b
-- columns: batch?|1|d|right; heads?|1|d|right; heads_kv?|1|d|right; seq|1|d|right; seq_k?|1|d|right;
--   head_dim|1|d|right; dtype|1|s|left; causal|1|flag|left; align?|1|s|left; @timed; tflops as rate|TFLOP/s|.3g|right;
--   vs_naive|×|ci(vs_naive_low, vs_naive_high)|right; vs_from as speed-up from?|1|s|left; @checked
-- note: The rate counts 4·B·H·pairs·D operations: pairs of query and key that the mask leaves.
-- note: `reference` computes in fp64 and appears only there.
-- note: Worst error: largest error relative to its bound over all outputs; checked: share of the outputs compared.
SELECT params ->> '$.batch' AS batch, params ->> '$.heads' AS heads, params ->> '$.heads_kv' AS heads_kv,
       params ->> '$.seq' AS seq, params ->> '$.seq_k' AS seq_k, params ->> '$.head_dim' AS head_dim,
       params ->> '$.dtype' AS dtype, params ->> '$.causal' AS causal, params ->> '$.align' AS align,
       implementation, time_ms, low_ms, high_ms, tflops, vs_naive, vs_naive_low, vs_naive_high, vs_from,
       worst_error, bound, scratch, n, checked_percent, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND NOT (role IS 'reference' AND status = 'skipped')
 ORDER BY seq, seq_k, head_dim, dtype <> 'fp32', dtype, causal, align, batch, heads, heads_kv, row_order;
