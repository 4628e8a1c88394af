"""Train a deep Q-network with a replay memory and a slowly following target network on a walk with a cliff."""

import math
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

LOSSES_FALL = False  # the targets move
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class Walk:
    """Positions 0 to 7: the left end costs 1, the right end pays 1, and each step costs a little."""

    def reset(self):
        self.position = 3
        return self.observe()

    def observe(self):
        return np.array([self.position / 7, np.sin(self.position), 1.0], dtype=np.float32)

    def step(self, action):
        self.position += 1 if action == 1 else -1
        terminated = self.position in (0, 7)
        reward = -0.05 + (self.position == 7) - (self.position == 0)
        return self.observe(), reward, terminated


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def main(steps=5):
    random.seed(0)
    rng = np.random.default_rng(0)
    device = torch.device(
        "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    )
    BATCH_SIZE, GAMMA, TAU, LR = 16, 0.95, 0.05, 1e-3
    policy_net, target_net = DQN(3, 2).to(device), DQN(3, 2).to(device)
    for p in policy_net.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, p.shape).astype("float32")))
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
    memory, env, steps_done = ReplayMemory(200), Walk(), 0

    def select_action(state):
        nonlocal steps_done
        eps_threshold = 0.05 + 0.85 * math.exp(-1.0 * steps_done / 50)
        steps_done += 1
        if random.random() > eps_threshold:
            with torch.no_grad():
                return policy_net(state).max(1).indices.view(1, 1)
        return torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)

    def optimize_model():
        batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
        non_final_mask = torch.tensor(
            tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool
        )
        non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
        state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
        reward_batch = torch.cat(batch.reward)
        state_action_values = policy_net(state_batch).gather(1, action_batch)
        next_state_values = torch.zeros(BATCH_SIZE, device=device)
        with torch.no_grad():
            next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
        expected_state_action_values = (next_state_values * GAMMA) + reward_batch
        criterion = nn.SmoothL1Loss()
        loss = criterion(state_action_values, expected_state_action_values.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        return loss.item()

    losses, rewards = [], []
    while len(losses) < steps:
        state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
        terminated = False
        while not terminated:
            action = select_action(state)
            observation, reward, terminated = env.step(action.item())
            reward = torch.tensor([reward], device=device)
            next_state = None if terminated else torch.from_numpy(observation).to(device).unsqueeze(0)
            memory.push(state, action, next_state, reward)
            rewards.append(reward.item())
            state = next_state
            if len(memory) >= BATCH_SIZE:
                losses.append(optimize_model())
                target_net_state_dict = target_net.state_dict()
                policy_net_state_dict = policy_net.state_dict()
                for key in policy_net_state_dict:
                    moved = policy_net_state_dict[key] * TAU + target_net_state_dict[key] * (1 - TAU)
                    target_net_state_dict[key] = moved
                target_net.load_state_dict(target_net_state_dict)
    return losses, {"rewards": rewards}
