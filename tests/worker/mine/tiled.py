"""FlashAttention-2 in plain PyTorch, as students write it: a loop over tiles of queries, and inside one over tiles of
keys."""
import math

import torch

Q_TILE = 16
K_TILE = 16


class Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        batch, n_queries, d = Q.shape
        n_keys = K.shape[1]
        scale = 1 / math.sqrt(d)
        O = torch.zeros_like(Q)
        L = torch.zeros(batch, n_queries, device=Q.device)
        for i in range(0, n_queries, Q_TILE):
            q = Q[:, i:i + Q_TILE].float()
            rows = q.shape[1]
            o = torch.zeros(batch, rows, d, device=Q.device)
            l = torch.zeros(batch, rows, device=Q.device)
            m = torch.full((batch, rows), -math.inf, device=Q.device)
            for j in range(0, n_keys, K_TILE):
                if is_causal and j > i + rows - 1:
                    break
                k, v = K[:, j:j + K_TILE].float(), V[:, j:j + K_TILE].float()
                s = q @ k.transpose(1, 2) * scale
                if is_causal:
                    at_q = torch.arange(i, i + rows, device=Q.device)[:, None]
                    at_k = torch.arange(j, j + k.shape[1], device=Q.device)[None, :]
                    s = s.masked_fill(at_k > at_q, -math.inf)
                grown = torch.maximum(m, s.max(dim=-1).values)
                p = torch.exp(s - grown[..., None])
                shrink = torch.exp(m - grown)
                l = shrink * l + p.sum(-1)
                o = shrink[..., None] * o + p @ v
                m = grown
            O[:, i:i + rows] = (o / l[..., None]).to(Q.dtype)
            L[:, i:i + rows] = m + torch.log(l)
        ctx.save_for_backward(L, Q, K, V, O)
        ctx.is_causal = is_causal
        return O

    @staticmethod
    def backward(ctx, dO):
        L, Q, K, V, O = ctx.saved_tensors
        batch, n_queries, d = Q.shape
        n_keys = K.shape[1]
        scale = 1 / math.sqrt(d)
        D = (O.float() * dO.float()).sum(-1)
        dQ, dK, dV = torch.zeros_like(Q), torch.zeros_like(K), torch.zeros_like(V)
        for j in range(0, n_keys, K_TILE):
            k, v = K[:, j:j + K_TILE].float(), V[:, j:j + K_TILE].float()
            dk, dv = torch.zeros_like(k), torch.zeros_like(v)
            for i in range(0, n_queries, Q_TILE):
                q, do = Q[:, i:i + Q_TILE].float(), dO[:, i:i + Q_TILE].float()
                rows = q.shape[1]
                s = q @ k.transpose(1, 2) * scale
                if ctx.is_causal:
                    at_q = torch.arange(i, i + rows, device=Q.device)[:, None]
                    at_k = torch.arange(j, j + k.shape[1], device=Q.device)[None, :]
                    s = s.masked_fill(at_k > at_q, -math.inf)
                p = torch.exp(s - L[:, i:i + rows, None])
                dv += p.transpose(1, 2) @ do
                dp = do @ v.transpose(1, 2)
                ds = p * (dp - D[:, i:i + rows, None]) * scale
                dQ[:, i:i + rows] += (ds @ k).to(Q.dtype)
                dk += ds.transpose(1, 2) @ q
            dK[:, j:j + K_TILE] = dk.to(K.dtype)
            dV[:, j:j + K_TILE] = dv.to(V.dtype)
        return dQ, dK, dV, None
