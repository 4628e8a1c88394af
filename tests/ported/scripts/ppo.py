"""Train an actor and a critic by proximal policy optimization on a signal that must be copied.

Actions are drawn by NumPy, whose random numbers are the same in each library.
"""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LOSSES_FALL = False  # each rollout has its own loss


def layer_init(layer, rng, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    q, _ = np.linalg.qr(rng.standard_normal((max(layer.weight.shape), max(layer.weight.shape))))
    layer.weight.data = torch.from_numpy((std * q[: layer.out_features, : layer.in_features]).astype("float32"))
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class CopyTask:
    """Several environments at once: each shows one of four signals, and pays for naming it."""

    def __init__(self, num_envs, rng):
        self.num_envs, self.rng = num_envs, rng

    def observe(self):
        self.signal = self.rng.integers(0, 4, self.num_envs)
        return (np.eye(4)[self.signal] + self.rng.normal(0, 0.1, (self.num_envs, 4))).astype(np.float32)

    def step(self, action):
        reward = (action == self.signal).astype(np.float32)
        return self.observe(), reward, self.rng.random(self.num_envs) < 0.1


class Agent(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(4, 32), rng), nn.Tanh(), layer_init(nn.Linear(32, 1), rng, std=1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(4, 32), rng), nn.Tanh(), layer_init(nn.Linear(32, 4), rng, std=0.01)
        )
        self.rng = rng

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        log_probs = F.log_softmax(self.actor(x), dim=-1)
        if action is None:
            cumulated = log_probs.detach().exp().cumsum(-1).cpu().numpy()
            draws = self.rng.random((len(cumulated), 1))
            action = torch.from_numpy((draws > cumulated[:, :-1]).sum(1)).to(x.device)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        return action, log_probs.gather(1, action.long().unsqueeze(-1)).squeeze(-1), entropy, self.critic(x)


def main(steps=5):
    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = np.random.default_rng(0)
    num_steps, num_envs, gamma, gae_lambda, clip_coef = 8, 4, 0.99, 0.95, 0.2
    ent_coef, vf_coef, max_grad_norm = 0.01, 0.5, 0.5
    envs = CopyTask(num_envs, rng)
    agent = Agent(rng).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)

    obs = torch.zeros((num_steps, num_envs) + (4,)).to(device)
    actions = torch.zeros((num_steps, num_envs)).to(device)
    logprobs = torch.zeros((num_steps, num_envs)).to(device)
    rewards = torch.zeros((num_steps, num_envs)).to(device)
    dones = torch.zeros((num_steps, num_envs)).to(device)
    values = torch.zeros((num_steps, num_envs)).to(device)
    next_obs = torch.Tensor(envs.observe()).to(device)
    next_done = torch.zeros(num_envs).to(device)

    losses, returned, fractions = [], [], []
    for update in range(1, steps + 1):
        frac = 1.0 - (update - 1.0) / steps
        optimizer.param_groups[0]["lr"] = frac * 2.5e-3
        for step in range(num_steps):
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            next_obs, reward, done = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).to(device).view(-1)
            next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(done.tolist()).to(device)

        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages = torch.zeros_like(rewards).to(device)
            lastgaelam = 0
            for t in reversed(range(num_steps)):
                if t == num_steps - 1:
                    nextnonterminal, nextvalues = 1.0 - next_done, next_value
                else:
                    nextnonterminal, nextvalues = 1.0 - dones[t + 1], values[t + 1]
                delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
            returns = advantages + values

        b_obs, b_logprobs, b_actions = obs.reshape((-1,) + (4,)), logprobs.reshape(-1), actions.reshape(-1)
        b_advantages, b_returns, b_values = advantages.reshape(-1), returns.reshape(-1), values.reshape(-1)
        b_inds = np.arange(num_steps * num_envs)
        clipfracs = []
        for _ in range(2):
            rng.shuffle(b_inds)
            for start in range(0, len(b_inds), 16):
                mb_inds = b_inds[start : start + 16]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions.long()[mb_inds])
                logratio = newlogprob - b_logprobs[mb_inds]
                ratio = logratio.exp()
                with torch.no_grad():
                    clipfracs += [((ratio - 1.0).abs() > clip_coef).float().mean().item()]
                mb_advantages = b_advantages[mb_inds]
                mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss1 = -mb_advantages * ratio
                pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)
                pg_loss = torch.max(pg_loss1, pg_loss2).mean()
                newvalue = newvalue.view(-1)
                v_clipped = b_values[mb_inds] + torch.clamp(newvalue - b_values[mb_inds], -clip_coef, clip_coef)
                v_loss_unclipped = (newvalue - b_returns[mb_inds]) ** 2
                v_loss = 0.5 * torch.max(v_loss_unclipped, (v_clipped - b_returns[mb_inds]) ** 2).mean()
                loss = pg_loss - ent_coef * entropy.mean() + v_loss * vf_coef
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
                optimizer.step()
        losses.append(loss.item())
        returned.append(rewards.mean().item())
        fractions.append(np.mean(clipfracs))
    return losses, {"rewards": returned, "clipped": fractions}
