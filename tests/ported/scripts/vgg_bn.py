"""Train a small VGG with batch normalization, its layers written as a list of widths and pools."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim.lr_scheduler import MultiStepLR

CFG = {"A": [8, "M", 16, "M", 32, 32, "M"], "B": [8, 8, "M", 16, 16, "M", 32, 32, "M"]}


class VGG(nn.Module):
    def __init__(self, features, num_classes=10, init_weights=True):
        super().__init__()
        self.features = features
        self.classifier = nn.Sequential(
            nn.Linear(32 * 2 * 2, 64), nn.ReLU(True), nn.Dropout(p=0.0), nn.Linear(64, num_classes)
        )
        if init_weights:
            self._initialize_weights()

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.size(0), -1)
        return self.classifier(x)

    def _initialize_weights(self):
        rng = np.random.default_rng(0)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                m.weight.data = torch.from_numpy(rng.normal(0, (2.0 / n) ** 0.5, m.weight.size()).astype(np.float32))
                if m.bias is not None:
                    m.bias.data.zero_()
            elif isinstance(m, nn.BatchNorm2d):
                m.weight.data.fill_(1)
                m.bias.data.zero_()
            elif isinstance(m, nn.Linear):
                m.weight.data = torch.Tensor(rng.normal(0, 0.1, tuple(m.weight.shape)).astype(np.float32))
                m.bias.data.zero_()


def make_layers(cfg, batch_norm=False):
    layers = []
    in_channels = 3
    for v in cfg:
        if v == "M":
            layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
        else:
            conv2d = nn.Conv2d(in_channels, v, kernel_size=3, padding=1)
            layers += [conv2d, nn.BatchNorm2d(v), nn.ReLU(inplace=True)] if batch_norm else [conv2d, nn.ReLU(True)]
            in_channels = v
    return nn.Sequential(*layers)


def adjust_learning_rate(optimizer, factor):
    for param_group in optimizer.param_groups:
        param_group["lr"] = param_group["lr"] * factor


def main(steps=5):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = VGG(make_layers(CFG["B"], batch_norm=True)).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
    rng = np.random.default_rng(1)
    data = torch.Tensor(rng.standard_normal((16, 3, 16, 16)).astype(np.float32)).to(device)
    target = torch.LongTensor(rng.integers(0, 10, 16).tolist()).to(device)

    losses = []
    for epoch in range(steps):
        model.train()
        output = model(data)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch == 2:
            adjust_learning_rate(optimizer, 0.5)
        losses.append(loss.data.item())

    model.eval()
    with torch.no_grad():
        output = model(data)
        prec = output.data.max(1, keepdim=True)[1].eq(target.data.view_as(output.data[:, :1])).sum()
    return losses, {"right": int(prec), "lr": optimizer.param_groups[0]["lr"], "test": criterion(output, target).item()}
