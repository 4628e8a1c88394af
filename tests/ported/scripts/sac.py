"""Train a soft actor-critic with a squashed normal policy on a linear system; all noise is NumPy's."""

import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal
from torch.optim import Adam

LOSSES_FALL = False  # the targets move
LOG_SIG_MAX = 2
LOG_SIG_MIN = -20
epsilon = 1e-6


class ReplayMemory:
    def __init__(self, capacity, seed):
        self.buffer = deque(maxlen=capacity)
        self.random = random.Random(seed)

    def push(self, *transition):
        self.buffer.append(transition)

    def sample(self, batch_size):
        batch = self.random.sample(list(self.buffer), batch_size)
        return map(np.stack, zip(*batch))

    def __len__(self):
        return len(self.buffer)


class QNetwork(nn.Module):
    def __init__(self, num_inputs, num_actions, hidden_dim):
        super(QNetwork, self).__init__()
        self.linear1 = nn.Linear(num_inputs + num_actions, hidden_dim)
        self.linear2 = nn.Linear(hidden_dim, 1)
        self.linear4 = nn.Linear(num_inputs + num_actions, hidden_dim)
        self.linear5 = nn.Linear(hidden_dim, 1)

    def forward(self, state, action):
        xu = torch.cat([state, action], 1)
        return self.linear2(F.relu(self.linear1(xu))), self.linear5(F.relu(self.linear4(xu)))


class GaussianPolicy(nn.Module):
    def __init__(self, num_inputs, num_actions, hidden_dim, low, high, rng):
        super().__init__()
        self.linear1 = nn.Linear(num_inputs, hidden_dim)
        self.mean_linear = nn.Linear(hidden_dim, num_actions)
        self.log_std_linear = nn.Linear(hidden_dim, num_actions)
        self.action_scale = torch.FloatTensor((high - low) / 2.0)
        self.action_bias = torch.FloatTensor((high + low) / 2.0)
        self.rng = rng

    def forward(self, state):
        x = F.relu(self.linear1(state))
        log_std = torch.clamp(self.log_std_linear(x), min=LOG_SIG_MIN, max=LOG_SIG_MAX)
        return self.mean_linear(x), log_std

    def sample(self, state):
        mean, log_std = self.forward(state)
        normal = Normal(mean, log_std.exp())
        x_t = normal.loc + normal.scale * torch.FloatTensor(self.rng.standard_normal(mean.shape))
        y_t = torch.tanh(x_t)
        action = y_t * self.action_scale + self.action_bias
        log_prob = normal.log_prob(x_t)
        log_prob -= torch.log(self.action_scale * (1 - y_t.pow(2)) + epsilon)
        log_prob = log_prob.sum(1, keepdim=True)
        return action, log_prob, torch.tanh(mean) * self.action_scale + self.action_bias

    def to(self, device):
        self.action_scale = self.action_scale.to(device)
        self.action_bias = self.action_bias.to(device)
        return super().to(device)


def soft_update(target, source, tau):
    for target_param, param in zip(target.parameters(), source.parameters()):
        target_param.data.copy_(target_param.data * (1.0 - tau) + param.data * tau)


def main(steps=5, batch_size=32, gamma=0.99, tau=0.05):
    device = torch.device("cpu")
    rng = np.random.default_rng(0)
    low, high = np.array([-2.0, -1.0]), np.array([2.0, 1.0])
    critic = QNetwork(3, 2, 24).to(device)
    policy = GaussianPolicy(3, 2, 24, low, high, rng).to(device)
    for p in [*critic.parameters(), *policy.parameters()]:
        p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, p.shape)))
    critic_target = copy.deepcopy(critic)
    critic_optim, policy_optim = Adam(critic.parameters(), lr=3e-3), Adam(policy.parameters(), lr=3e-3)
    target_entropy = -float(np.prod(low.shape))
    log_alpha = torch.zeros(1, requires_grad=True, device=device)
    alpha_optim = Adam([log_alpha], lr=3e-3)

    memory = ReplayMemory(1000, 0)
    state = rng.standard_normal(3)
    for _ in range(64):
        with torch.no_grad():
            action = policy.sample(torch.FloatTensor(state).to(device).unsqueeze(0))[0].detach().cpu().numpy()[0]
        next_state = 0.9 * state + 0.1 * np.append(action, 0)
        memory.push(state, action, -np.square(next_state).sum(), next_state, float(rng.random() > 0.1))
        state = next_state

    losses, numbers = [], []
    for _ in range(steps):
        state_batch, action_batch, reward_batch, next_state_batch, mask_batch = memory.sample(batch_size)
        state_batch = torch.FloatTensor(state_batch).to(device)
        next_state_batch = torch.FloatTensor(next_state_batch).to(device)
        action_batch = torch.FloatTensor(action_batch).to(device)
        reward_batch = torch.FloatTensor(reward_batch).to(device).unsqueeze(1)
        mask_batch = torch.FloatTensor(mask_batch).to(device).unsqueeze(1)
        alpha = log_alpha.exp()
        with torch.no_grad():
            next_state_action, next_state_log_pi, _ = policy.sample(next_state_batch)
            qf1_next_target, qf2_next_target = critic_target(next_state_batch, next_state_action)
            min_qf_next_target = torch.min(qf1_next_target, qf2_next_target) - alpha * next_state_log_pi
            next_q_value = reward_batch + mask_batch * gamma * min_qf_next_target
        qf1, qf2 = critic(state_batch, action_batch)
        qf_loss = F.mse_loss(qf1, next_q_value) + F.mse_loss(qf2, next_q_value)
        critic_optim.zero_grad()
        qf_loss.backward()
        critic_optim.step()

        pi, log_pi, _ = policy.sample(state_batch)
        min_qf_pi = torch.min(*critic(state_batch, pi))
        policy_loss = ((alpha.detach() * log_pi) - min_qf_pi).mean()
        policy_optim.zero_grad()
        policy_loss.backward()
        policy_optim.step()

        alpha_loss = -(log_alpha * (log_pi + target_entropy).detach()).mean()
        alpha_optim.zero_grad()
        alpha_loss.backward()
        alpha_optim.step()
        soft_update(critic_target, critic, tau)
        losses.append(qf_loss.item())
        numbers.append([policy_loss.item(), alpha_loss.item(), log_alpha.exp().clone().item()])
    return losses, {"policy, alpha": numbers}
