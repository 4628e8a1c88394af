"""Knowledge distillation: a small network learns the softened outputs of a larger one, on digits."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def build(widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b, bias=False), nn.BatchNorm1d(b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-2])


def fill(model, seed):
    rng = np.random.default_rng(seed)
    for name, p in model.named_parameters():
        p.data.copy_(torch.as_tensor(rng.standard_normal(p.shape) * (0.1 if p.dim() > 1 else 0.0) + (p.dim() == 1)))


def main(steps=5):
    T, soft_weight, ce_weight = 2.0, 0.25, 0.75
    digits = load_digits()
    data = torch.tensor(digits.data[:256] / 16.0, dtype=torch.float)
    target = torch.tensor(digits.target[:256], dtype=torch.long)
    loader = DataLoader(TensorDataset(data, target), batch_size=64, shuffle=False, num_workers=0, pin_memory=False)
    teacher, student = build([64, 64, 32, 10]), build([64, 16, 10])
    fill(teacher, 0), fill(student, 1)
    criterion = nn.CrossEntropyLoss()
    teacher_optimizer = optim.Adam(teacher.parameters(), lr=1e-3)
    for inputs, labels in loader:
        teacher_optimizer.zero_grad()
        criterion(teacher(inputs), labels).backward()
        teacher_optimizer.step()
    teacher.eval()
    frozen = copy.deepcopy(teacher).requires_grad_(False)
    optimizer = optim.SGD(student.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    student.train()
    losses = []
    for epoch in range(steps):
        running_loss = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = frozen(inputs)
            student_logits = student(inputs)
            soft_targets = F.softmax(teacher_logits / T, dim=-1)
            soft_prob = F.log_softmax(student_logits / T, dim=-1)
            soft_loss = torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size()[0] * (T**2)
            also = F.kl_div(soft_prob, soft_targets, reduction="batchmean") * T**2
            assert torch.allclose(soft_loss, also, atol=1e-5)
            loss = soft_weight * soft_loss + ce_weight * criterion(student_logits, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        losses.append(running_loss / len(loader))
    _, predicted = torch.max(student(data).data, 1)
    correct = (predicted == target).sum().item()
    return losses, {"correct": correct, "teacher": [p.sum().item() for p in frozen.parameters()]}
