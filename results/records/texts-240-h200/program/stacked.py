# ruff: noqa
"""Many small models at once: pretraining, Stage 1, RL on level 2, gold SFT, exact probabilities. M models in stacked weights."""

import json, math, os, sys, time
import multiprocessing as mp
import numpy as np

OUT = os.environ.get("OUT", "/tmp/labout")
PLAN = json.load(open(sys.argv[1]))
T0 = time.time()


def say(*a):
    print(f"[{time.time() - T0:6.1f}]", *a, flush=True)


L, D, H, HD, FF, V = 4, 96, 3, 32, 264, 230
EPS, THETA = 1e-6, 1000.0
ROWS, LENGTH = PLAN.get("rows", 12), 192
STEPS = PLAN["steps"]
MODELS = PLAN["models"]  # recipe, seed, division
RECIPES = PLAN["recipes"]
WORKERS = PLAN.get("workers", 15)
M = len(MODELS)


def text_tasks():
    """One per chapter and text (recipe, group of seeds that share it)."""
    for number in range(-(-STEPS // 64)):
        for key, (recipe, seed) in enumerate(TEXTS):
            r = RECIPES[recipe]
            yield (recipe, {**r["mix"]}, r.get("own", {}), ROWS, seed, STEPS, number)


share = PLAN.get("share_text", 1)
TEXTS, TEXT_OF = [], []
for m in MODELS:
    key = (m["recipe"], m["seed"] // share * share if share > 1 else m["seed"])
    if key not in TEXTS:
        TEXTS.append(key)
    TEXT_OF.append(TEXTS.index(key))


def init_worker():
    import torch

    torch.set_num_threads(1)


def main():
    ctx = mp.get_context("fork")
    import text

    END_ID_ = text.tokenizer().convert_tokens_to_ids("<|end|>")
    pool = ctx.Pool(WORKERS, init_worker)
    chapters = pool.imap(text.chapter, text_tasks(), chunksize=1)
    import torch
    import torch.nn.functional as Fn
    from torch.nn.attention import sdpa_kernel, SDPBackend

    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(max(1, PLAN.get("threads", 2)))
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(PLAN.get("torch_seed", 1))
    say(
        "device",
        dev,
        torch.__version__,
        torch.cuda.get_device_name() if dev == "cuda" else "",
        "models",
        M,
        "texts",
        len(TEXTS),
    )

    # ---- weights
    P = {}

    def new(name, *shape, std=None):
        rows = []
        for m in MODELS:
            g = torch.Generator().manual_seed(hash_(name) + 1000003 * m["seed"])
            rows.append(torch.ones(*shape) if std is None else torch.randn(*shape, generator=g) * std)
        P[name] = torch.stack(rows).to(dev).requires_grad_()

    def hash_(name):
        return sum((i + 1) * 131 * ord(c) for i, c in enumerate(name)) % 1000003

    new("embed", V, D, std=0.5)
    new("head", V, D, std=D**-0.5)
    new("norm", D)
    for l in range(L):
        new(f"{l}.n1", D)
        new(f"{l}.n2", D)
        for n in "qkv":
            new(f"{l}.{n}", H * HD, D, std=D**-0.5)
        new(f"{l}.o", D, H * HD, std=0.5 * (H * HD) ** -0.5)
        new(f"{l}.g", FF, D, std=D**-0.5)
        new(f"{l}.u", FF, D, std=D**-0.5)
        new(f"{l}.d", D, FF, std=0.5 * FF**-0.5)
    names = list(P)
    inv = THETA ** (-torch.arange(0, HD, 2, device=dev).float() / HD)

    def rope_table(positions):  # (T,) -> cos, sin (T, HD)
        a = positions.float()[:, None] * inv
        a = torch.cat([a, a], -1)
        return a.cos(), a.sin()

    def rope(x, cos, sin):  # (..., T, HD)
        half = torch.cat([-x[..., HD // 2 :], x[..., : HD // 2]], -1)
        return x * cos + half * sin

    def lin(x, w):  # (M,N,in) (M,out,in)
        return torch.bmm(x, w.transpose(1, 2))

    def rms(x, w):
        return Fn.rms_norm(x, (D,), eps=EPS) * w[:, None, :]

    def hidden(p, tokens):
        """tokens (M,B,T) -> (M,B*T,D); causal."""
        m, b, t = tokens.shape
        cos, sin = rope_table(torch.arange(t, device=dev))
        index = (tokens + V * torch.arange(m, device=dev)[:, None, None]).view(m, b * t)
        x = p["embed"].view(m * V, D)[index.view(-1)].view(m, b * t, D)
        for l in range(L):
            h = rms(x, p[f"{l}.n1"])
            q, k, v = (lin(h, p[f"{l}.{n}"]).view(m * b, t, H, HD).transpose(1, 2) for n in "qkv")
            a = Fn.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
            x = x + lin(a.transpose(1, 2).reshape(m, b * t, H * HD), p[f"{l}.o"])
            h = rms(x, p[f"{l}.n2"])
            x = x + lin(Fn.silu(lin(h, p[f"{l}.g"])) * lin(h, p[f"{l}.u"]), p[f"{l}.d"])
        return rms(x, p["norm"])

    def log_probs(p, tokens):
        """(M,B,T) -> log p of tokens[:, :, 1:], (M,B,T-1)."""
        m, b, t = tokens.shape
        logits = lin(hidden(p, tokens[:, :, :-1]), p["head"])
        target = tokens[:, :, 1:].reshape(-1)
        return -Fn.cross_entropy(logits.view(-1, V), target, reduction="none").view(m, b, t - 1)

    # ---- optimisers: per-model learning rates (M,)
    HIDDEN = [n for n in names if P[n].dim() == 3 and n not in ("embed", "head")]
    OUTER = [n for n in names if n not in HIDDEN]

    def clip(max_norm=1.0):
        total = sum(P[n].grad.flatten(1).square().sum(1) for n in names)
        norm = total.sqrt()
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        scale = torch.where(torch.isfinite(scale), scale, torch.zeros_like(scale))
        for n in names:
            P[n].grad.mul_(scale.view(-1, *[1] * (P[n].dim() - 1)))
        return norm

    class Adam:
        def __init__(self, which, beta2, wd=0.01):
            self.which, self.b2, self.wd, self.t = which, beta2, wd, 0
            self.m = {n: torch.zeros_like(P[n]) for n in which}
            self.v = {n: torch.zeros_like(P[n]) for n in which}

        @torch.no_grad()
        def step(self, rate, active=None):  # rate (M,); active (M,) 0/1: models without samples make no update
            self.t += 1
            c1, c2 = 1 - 0.9**self.t, 1 - self.b2**self.t
            for n in self.which:
                g, shape = P[n].grad, (-1, *[1] * (P[n].dim() - 1))
                self.m[n].lerp_(g, 0.1)
                self.v[n].mul_(self.b2).addcmul_(g, g, value=1 - self.b2)
                update = (self.m[n] / c1) / ((self.v[n] / c2).sqrt_() + 1e-8)
                r = rate if active is None else rate * active
                P[n].mul_(1 - r.view(shape) * self.wd).sub_(update * r.view(shape))

    class Muon:
        def __init__(self, wd=0.01):
            self.adam, self.wd = Adam(OUTER, 0.98, wd), wd
            self.mom = {n: torch.zeros_like(P[n]) for n in HIDDEN}
            self.groups = {}
            for n in HIDDEN:
                self.groups.setdefault(tuple(P[n].shape[1:]), []).append(n)

        @torch.no_grad()
        def step(self, rate):
            self.adam.step(rate)
            for (rows, cols), group in self.groups.items():
                nest = []
                for n in group:
                    self.mom[n].lerp_(P[n].grad, 0.05)
                    nest.append(P[n].grad.lerp(self.mom[n], 0.95))
                x = torch.cat(nest)
                tall = rows > cols
                x = x.mT.contiguous() if tall else x
                x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
                a, b, c = 3.4445, -4.775, 2.0315
                for _ in range(5):
                    gram = x @ x.mT
                    x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
                x = x.mT if tall else x
                r5 = (rate * 5.0).view(-1, 1, 1)
                scale = max(1.0, rows / cols) ** 0.5
                for n, u in zip(group, x.split(M)):
                    P[n].mul_(1 - r5 * self.wd).sub_(u * (r5 * scale))

    def zero():
        for n in names:
            P[n].grad = None

    def rate_of(key, default):
        return torch.tensor([float(RECIPES[m["recipe"]].get(key, default)) for m in MODELS], device=dev)

    def snapshot():
        return {n: P[n].detach().clone() for n in names}

    @torch.no_grad()
    def restore(s):
        for n in names:
            P[n].copy_(s[n])

    # ---- pretraining
    opt = Muon()
    lr = rate_of("pretrain_lr", 4e-3)
    orders = [np.random.default_rng([7, m["seed"]]) for m in MODELS]
    step, waited = 0, 0.0
    losses = []
    while step < STEPS:
        t = time.time()
        parts = [next(chapters) for _ in TEXTS]
        waited += time.time() - t
        arrays = np.stack([parts[TEXT_OF[i]][orders[i].permutation(64)] for i in range(M)])  # (M,64,R,193)
        chunk = torch.from_numpy(arrays).to(dev)
        for s in range(min(64, STEPS - step)):
            raw = chunk[:, s].long()
            mask, tokens = (raw >= 512).float()[:, :, 1:], raw % 512
            zero()
            logp = log_probs(P, tokens)
            loss = -(logp * mask).sum((1, 2)) / mask.sum((1, 2)).clamp(min=1)
            loss.sum().backward()
            clip()
            f = min(1.0, (step + 1) / 101) * (1 - step / STEPS) ** 0.7
            opt.step(lr * f)
            step += 1
        if step == 192 and time.time() - T0 + (STEPS - step) * (time.time() - t0) / 128 > PLAN.get(
            "pretrain_limit", 1e9
        ):
            say("too slow")
            pool.terminate()
            os._exit(3)
        if step == 64:
            t0 = time.time()
        if step % 640 < 64:
            say(
                "pretrain",
                step,
                "loss",
                [round(x, 3) for x in loss.detach().tolist()[:8]],
                "waited",
                round(waited, 1),
                f"mem {torch.cuda.max_memory_allocated() / 2**30:.1f}" if dev == "cuda" else "",
            )
    pool.terminate()
    base = snapshot()

    # ---- problems
    divs = {m["division"]: dict(np.load(f"{PLAN['data']}/div_{m['division']}.npz")) for m in MODELS}

    def rows_of(key_p, key_g, n=None, order=None):
        """per model tokens (M,N,T) padded with 0, loss mask (M,N,T)"""
        toks, masks = [], []
        for i, m in enumerate(MODELS):
            d = divs[m["division"]]
            p, g = d[key_p], d[key_g]
            idx = np.arange(len(p)) if order is None else order[i]
            idx = idx[:n]
            p, g = p[idx], g[idx]
            lp, lg = (p >= 0).sum(1), (g >= 0).sum(1)
            w = WIDTH[key_p]
            a, k = np.zeros((len(p), w), np.int64), np.zeros((len(p), w), np.float32)
            for row in range(len(p)):
                a[row, : lp[row]] = p[row, : lp[row]]
                a[row, lp[row] : lp[row] + lg[row]] = g[row, : lg[row]]
                k[row, lp[row] : lp[row] + lg[row]] = 1
            toks.append(a)
            masks.append(k)
        return torch.from_numpy(np.stack(toks)).to(dev), torch.from_numpy(np.stack(masks)).to(dev)

    WIDTH = {}
    for d in divs.values():
        for key in d:
            if key.endswith("_p"):
                w = int(((d[key] >= 0).sum(1) + (d[key[:-2] + "_g"] >= 0).sum(1)).max())
                WIDTH[key] = max(WIDTH.get(key, 0), w)

    # ---- exact probabilities
    colon, equals, newline = (
        text.tokenizer().convert_tokens_to_ids(text.tokenizer().tokenize(c))[0] for c in (":", "=", "\n")
    )
    CELLS = [(side, level) for side in ("trained", "heldout") for level in (1, 2, 3, 4)]
    gold_rows = {}
    for side, level in CELLS:
        tk, mk = rows_of(f"{side}{level}_p", f"{side}{level}_g")
        # copy mask: tokens after ':' up to '=' in lines after the first of the response
        resp = mk.bool()
        nl = ((tk == newline) & resp).cumsum(-1)
        after = torch.zeros_like(resp)
        inside = torch.zeros_like(resp[..., 0])
        for t in range(tk.shape[-1]):
            is_eq, is_col = tk[..., t] == equals, tk[..., t] == colon
            after[..., t] = inside & resp[..., t] & (nl[..., t] > 0)
            inside = (inside & ~is_eq) | is_col
        gold_rows[side, level] = (tk, mk, after.float())

    @torch.no_grad()
    def gold():
        out = {}
        for cell, (tk, mk, cp) in gold_rows.items():
            total, copy = [], []
            per = max(1, 400_000 // (M * tk.shape[-1]))
            for s in range(0, tk.shape[1], per):
                lp = log_probs(P, tk[:, s : s + per])
                total.append((lp * mk[:, s : s + per, 1:]).sum(-1))
                copy.append((lp * cp[:, s : s + per, 1:]).sum(-1))
            out[cell] = (torch.cat(total, 1).double().cpu().numpy(), torch.cat(copy, 1).double().cpu().numpy())
        return out

    # ---- SFT
    def sft(key, steps, epoch_rows, lr, seed):
        orders = [
            np.concatenate([np.random.default_rng([seed, m["seed"], e]).permutation(epoch_rows) for e in range(3)])
            for m in MODELS
        ]
        tk, mk = rows_of(f"{key}_p", f"{key}_g", epoch_rows)
        order = torch.from_numpy(np.stack(orders)).to(dev)
        opt = Adam(names, 0.95)
        for s in range(steps):
            idx = order[:, s * 128 : (s + 1) * 128]
            a = torch.take_along_dim(tk, idx[:, :, None], 1)
            k = torch.take_along_dim(mk, idx[:, :, None], 1)[:, :, 1:]
            zero()
            logp = log_probs(P, a)
            loss = -(logp * k).sum((1, 2)) / k.sum((1, 2))
            loss.sum().backward()
            clip()
            opt.step(lr * min(1.0, (s + 1) / 11) * (1 - s / steps))
        say("sft", key, "loss", [round(x, 3) for x in loss.detach().tolist()[:8]])

    # ---- generation
    PMAX = max(int((d["rl_p"] >= 0).sum(1).max()) for d in divs.values())
    NEW = PLAN.get("new_tokens", 64)

    @torch.no_grad()
    def generate(prompts, lens, copies):
        """prompts (M,N,PMAX) left-padded; -> tokens (M,N*copies,NEW), 0-padded after END"""
        m, n, p_ = prompts.shape
        start = PMAX - lens  # (M,N)
        total = PMAX + NEW
        R = m * n * copies
        cosT, sinT = rope_table(torch.arange(total, device=dev))
        index = (prompts + V * torch.arange(m, device=dev)[:, None, None]).view(m, n * p_)
        x = P["embed"].view(m * V, D)[index.view(-1)].view(m, n * p_, D)
        pos = torch.arange(p_, device=dev)
        allowed = (pos[None, :] <= pos[:, None])[None] & (
            pos[None, None, :] >= start.view(-1)[:, None, None]
        )  # (MN,P,P)
        allowed = allowed | torch.eye(p_, dtype=torch.bool, device=dev)[None]
        bias = torch.zeros(m * n, 1, p_, p_, device=dev).masked_fill(~allowed[:, None], -1e9)
        caches = []
        for l in range(L):
            h = rms(x, P[f"{l}.n1"])
            q, k, v = (lin(h, P[f"{l}.{c}"]).view(m * n, p_, H, HD).transpose(1, 2) for c in "qkv")
            q, k = rope(q, cosT[:p_], sinT[:p_]), rope(k, cosT[:p_], sinT[:p_])
            att = torch.softmax(q @ k.mT / HD**0.5 + bias, -1) @ v
            K = torch.zeros(R, H, total, HD, device=dev)
            W = torch.zeros(R, H, total, HD, device=dev)
            K[:, :, :p_] = k.repeat_interleave(copies, 0)
            W[:, :, :p_] = v.repeat_interleave(copies, 0)
            caches.append((K, W))
            x = x + lin(att.transpose(1, 2).reshape(m, n * p_, H * HD), P[f"{l}.o"])
            h = rms(x, P[f"{l}.n2"])
            x = x + lin(Fn.silu(lin(h, P[f"{l}.g"])) * lin(h, P[f"{l}.u"]), P[f"{l}.d"])
        x = rms(x, P["norm"]).view(m, n, p_, D)[:, :, -1]
        logits = lin(x, P["head"]).repeat_interleave(copies, 1)  # (M,N*c,V)
        B = n * copies
        starts = start.view(-1).repeat_interleave(copies)  # (R,)
        keypos = torch.arange(total, device=dev)
        dead = torch.where(keypos[None] < starts[:, None], -1e9, 0.0)  # (R,total)
        out = torch.zeros(m, B, NEW, dtype=torch.long, device=dev)
        done = torch.zeros(m, B, dtype=torch.bool, device=dev)
        for t in range(NEW):
            token = (logits - torch.empty_like(logits).exponential_().log()).argmax(-1)
            token = torch.where(done, torch.zeros_like(token), token)
            out[:, :, t] = token
            done = done | (token == END_ID_)
            if t == NEW - 1 or (t % 8 == 7 and bool(done.all())):
                break
            here = p_ + t
            index = token + V * torch.arange(m, device=dev)[:, None]
            x = P["embed"].view(m * V, D)[index.view(-1)].view(m, B, D)
            c_, s_ = cosT[here], sinT[here]
            for l in range(L):
                K, W = caches[l]
                h = rms(x, P[f"{l}.n1"])
                q, k, v = (lin(h, P[f"{l}.{c}"]).view(R, H, HD) for c in "qkv")
                K[:, :, here] = rope(k, c_, s_)
                W[:, :, here] = v
                q = rope(q, c_, s_)[:, :, None] / HD**0.5
                score = q @ K[:, :, : here + 1].mT + dead[:, None, None, : here + 1]
                att = (torch.softmax(score, -1) @ W[:, :, : here + 1]).view(m, B, H * HD)
                x = x + lin(att, P[f"{l}.o"])
                h = rms(x, P[f"{l}.n2"])
                x = x + lin(Fn.silu(lin(h, P[f"{l}.g"])) * lin(h, P[f"{l}.u"]), P[f"{l}.d"])
            logits = lin(rms(x, P["norm"]), P["head"])
        return out

    # ---- RL
    def rl(steps, seed, prompts_per=64, n=16):
        curves = []
        opt = Adam(names, 0.98)
        lr = rate_of("rl_lr", 2.4e-4)
        ppad, plen, tails, tlen = [], [], [], []
        for m in MODELS:
            d = divs[m["division"]]
            ln = (d["rl_p"] >= 0).sum(1)
            a = np.zeros((len(ln), PMAX), np.int64)
            for i, k in enumerate(ln):
                a[i, PMAX - k :] = d["rl_p"][i, :k]
            tl = (d["rl_t"] >= 0).sum(1)
            b = np.zeros((len(tl), 13), np.int64)
            for i, k in enumerate(tl):
                b[i, 13 - k :] = d["rl_t"][i, :k]
            ppad.append(a)
            plen.append(ln)
            tails.append(b)
            tlen.append(tl)
        ppad, plen, tails, tlen = (
            torch.from_numpy(np.stack(x).astype(np.int64)).to(dev) for x in (ppad, plen, tails, tlen)
        )
        order = torch.from_numpy(
            np.stack([np.random.default_rng([seed, m["seed"]]).permutation(6400) for m in MODELS])
        ).to(dev)
        for s in range(steps):
            if time.time() - T0 > PLAN.get("limit", 1e9):
                say("limit: RL stops at", s)
                break
            idx = order[:, (s * prompts_per) % 6400 : (s * prompts_per) % 6400 + prompts_per]
            pr = torch.take_along_dim(ppad, idx[:, :, None], 1)
            ln = torch.take_along_dim(plen, idx, 1)
            tl = torch.take_along_dim(tails, idx[:, :, None], 1).repeat_interleave(n, 1)
            tn = torch.take_along_dim(tlen, idx, 1).repeat_interleave(n, 1)
            comp = generate(pr, ln, n)  # (M,B,NEW)
            is_end = comp == END_ID_
            ended = is_end.any(-1)
            endpos = torch.where(ended, is_end.float().argmax(-1), torch.full_like(ended, NEW - 1, dtype=torch.long))
            back = endpos[..., None] - torch.arange(12, -1, -1, device=dev)  # 13 places, last is END
            got = torch.where(back >= 0, torch.take_along_dim(comp, back.clamp(min=0), -1), torch.zeros_like(back))
            want = torch.arange(13, device=dev)[None, None] >= 13 - tn[..., None]
            right = ended & ((got == tl) | ~want).all(-1)
            reward = right.float().view(M, prompts_per, n)
            adv = (reward - reward.mean(-1, keepdim=True)) / (reward.std(-1, keepdim=True) + 1e-6)
            signal = reward.std(-1) > 0  # (M,G)
            curves.append((reward.mean((1, 2)).tolist(), signal.float().mean(1).tolist()))
            keep = signal.repeat_interleave(n, 1)  # (M,B)
            count = keep.sum(1)
            most = int(count.max())
            if most == 0:
                continue
            sel = keep.long().argsort(dim=1, descending=True, stable=True)[:, :most]
            length = endpos + 1
            lens = torch.take_along_dim(ln.repeat_interleave(n, 1), sel, 1)
            T = PMAX + int(length.max())
            full = torch.cat([pr.repeat_interleave(n, 1), comp], -1)  # left padded
            full = torch.take_along_dim(full, sel[..., None], 1)
            shift = (PMAX - lens)[..., None] + torch.arange(T, device=dev)
            total_w = PMAX + NEW
            rows = torch.where(
                shift < total_w, torch.take_along_dim(full, shift.clamp(max=total_w - 1), -1), torch.zeros_like(shift)
            )
            le = torch.take_along_dim(length, sel, 1)
            t_ = torch.arange(T, device=dev)
            mask = ((t_ >= lens[..., None]) & (t_ < (lens + le)[..., None])).float() * torch.take_along_dim(
                keep, sel, 1
            )[..., None]
            w = (
                mask
                * torch.take_along_dim(adv.view(M, -1), sel, 1)[..., None]
                / mask.sum((1, 2)).clamp(min=1)[:, None, None]
            )
            zero()
            per = max(1, PLAN.get("rl_tokens", 600_000) // (M * T))
            for a in range(0, most, per):
                logp = log_probs(P, rows[:, a : a + per])
                (-(logp * w[:, a : a + per, 1:]).sum()).backward()
            clip()
            rate = lr * min(1.0, (s + 1) / 6)
            opt.step(rate, (count > 0).float())
            if s % 10 == 9 or s < 2:
                say("rl", s + 1, "right", [round(x, 2) for x in curves[-1][0][:16]])
        return curves

    results = {}
    say("gold base")
    results["base"] = gold()
    sft("stage1", PLAN.get("stage1_steps", 92), 5900, rate_of("sft_lr", 4.2e-4), 11)
    stage1 = snapshot()
    results["stage1"] = gold()
    sft("rl", PLAN.get("gold_steps", 50), 6400, rate_of("sft_lr", 4.2e-4), 12)
    results["gold-sft"] = gold()
    restore(stage1)
    save(results, [])
    say("rl begins")
    marks = PLAN.get("rl_marks", [60])
    curves = rl(marks[0], 13)
    results["rl"] = gold()
    save(results, curves)
    say("done")


def save(results, curves):
    os.makedirs(OUT, exist_ok=True)
    rows = []
    for i, m in enumerate(MODELS):
        for side, level in results["base"]:
            row = {**m, "side": side, "level": level}
            ps = {k: results[k][side, level][0][i] for k in results}
            for k in results:
                row[k] = float(np.exp(ps[k]).mean())
                row[k + "_hand"] = float(np.exp(results[k][side, level][1][i]).mean())
            for k in ("rl", "gold-sft"):
                if k in ps:
                    solved = np.exp(ps[k]) > 0.25
                    floor = np.maximum(ps["base"], ps["stage1"]) < math.log(1e-6)
                    row[k + "_solved"], row[k + "_beyond"] = int(solved.sum()), int((solved & floor).sum())
            before = np.exp(ps["base"]) > 0.25
            row["base_solved"], row["stage1_kept"] = (
                int(before.sum()),
                int((before & (np.exp(ps["stage1"]) > 0.25)).sum()),
            )
            rows.append(row)
    json.dump({"rows": rows, "curves": curves, "plan": PLAN}, open(f"{OUT}/lab.json", "w"))
    if "rl" in results:
        table(rows)
    else:
        table(rows, "gold-sft")


def table(rows, what="rl"):
    """recipe: per seed heldout L2, L3: base/stage1/what; beyond"""
    for name in RECIPES:
        mine = [r for r in rows if r["recipe"] == name]
        if not mine:
            continue
        print(f"== {name}")
        for seed in sorted({r["seed"] for r in mine}):
            cell = {(r["side"], r["level"]): r for r in mine if r["seed"] == seed}
            f = lambda s, l, k: f"{100 * cell[s, l][k]:.0f}"
            h2, h3 = cell["heldout", 2], cell["heldout", 3]
            print(
                f"  s{seed} {h2['division']}: H1 {f('heldout', 1, 'base')}/{f('heldout', 1, 'stage1')}/{f('heldout', 1, what)} H2 {f('heldout', 2, 'base')}/{f('heldout', 2, 'stage1')}/{f('heldout', 2, 'gold-sft')}/{f('heldout', 2, what)} H3 {100 * h3['base']:.1f}/{100 * h3['stage1']:.1f}/{100 * h3['gold-sft']:.1f}/{100 * h3[what]:.1f} H4 {100 * cell['heldout', 4][what]:.1f} "
                f"hand2 {100 * h2['base_hand']:.0f}>{100 * h2['stage1_hand']:.0f}>{100 * h2[what + '_hand']:.0f} hand3 {100 * h3[what + '_hand']:.0f} T2 {f('trained', 2, 'base')}/{f('trained', 2, 'stage1')}/{f('trained', 2, what)} T3 {f('trained', 3, what)} beyond3 {h3[what + '_beyond']}/{h3[what + '_solved']}"
            )
    sys.stdout.flush()


main()
