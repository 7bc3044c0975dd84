-- sentence: Device i holds columns of W₁ and W₂ and the same rows of W₃, and has kept x and its columns of x₁, x₂ and z. With its parts of all of these, dW₃ = zᵀ·dy and
--   dz = dy·W₃ᵀ; dx₂ = dz ∘ f(x₁) and dx₁ = dz ∘ f'(x₁) ∘ x₂; dW₂ = xᵀ·dx₂ and dW₁ = xᵀ·dx₁: gradients of weights need no message. dx is the sum over the devices of
--   dx₁·W₁ᵀ + dx₂·W₂ᵀ, by one all-reduce. On a small layer over {ranks} devices these equations gave the derivatives of the whole layer, exactly.
-- experiment: tp_calcs
-- fills: a
-- columns: ranks|1|d|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.ranks' <> 8, v.params ->> '$.ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT min(params ->> '$.ranks', 64) AS ranks, run_uid
  FROM t
 WHERE place = 1;
