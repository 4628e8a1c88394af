"""Train a spatial transformer on shifted digits, a box head with the IoU loss, and non-maximum suppression."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class STN(nn.Module):
    def __init__(self):
        super(STN, self).__init__()
        self.localization = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3), nn.MaxPool2d(2, stride=2), nn.ReLU(True), nn.Conv2d(8, 10, 3), nn.ReLU(True)
        )
        self.fc_loc = nn.Sequential(nn.Linear(10 * 3 * 3, 32), nn.ReLU(True), nn.Linear(32, 3 * 2))
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3)
        self.fc = nn.Linear(8 * 5 * 5, 10)
        self.box = nn.Linear(8 * 5 * 5, 4)

    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 10 * 3 * 3)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False, padding_mode="border")

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = x.view(x.shape[0], -1)
        return F.log_softmax(self.fc(x), dim=1), self.box(x).sigmoid()


def box_iou(boxes1, boxes2):
    area1 = (boxes1[:, 2] - boxes1[:, 0]) * (boxes1[:, 3] - boxes1[:, 1])
    area2 = (boxes2[:, 2] - boxes2[:, 0]) * (boxes2[:, 3] - boxes2[:, 1])
    lt = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    rb = torch.min(boxes1[:, None, 2:], boxes2[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    union = area1[:, None] + area2 - inter
    return inter / union, union


def generalized_box_iou(boxes1, boxes2):
    iou, union = box_iou(boxes1, boxes2)
    lt = torch.min(boxes1[:, None, :2], boxes2[:, :2])
    rb = torch.max(boxes1[:, None, 2:], boxes2[:, 2:])
    wh = (rb - lt).clamp(min=0)
    area = wh[..., 0] * wh[..., 1]
    return iou - (area - union) / area


def box_cxcywh_to_xyxy(x):
    x_c, y_c, w, h = x.unbind(-1)
    b = [(x_c - 0.5 * w), (y_c - 0.5 * h), (x_c + 0.5 * w), (y_c + 0.5 * h)]
    return torch.stack(b, dim=-1)


def nms(boxes, scores, threshold):
    keep = []
    order = scores.sort(0, descending=True)[1]
    while order.numel() > 0:
        if order.numel() == 1:
            keep.append(order.item())
            break
        i = order[0].item()
        keep.append(i)
        iou = box_iou(boxes[i : i + 1], boxes[order[1:]])[0].squeeze(0)
        idx = (iou <= threshold).nonzero().squeeze(-1)
        order = order[idx + 1]
    return torch.LongTensor(keep)


def main(steps=5):
    rng = np.random.RandomState(1)
    digits = load_digits()
    canvas = np.zeros((64, 12, 12), dtype=np.float32)
    boxes = np.zeros((64, 4), dtype=np.float32)
    for k in range(64):
        i, j = rng.randint(0, 5, 2)
        canvas[k, i : i + 8, j : j + 8] = digits.images[k] / 16
        boxes[k] = (j + 4) / 12, (i + 4) / 12, 8 / 12, 8 / 12
    data, target, boxes = (
        torch.from_numpy(canvas)[:, None],
        torch.from_numpy(digits.target[:64]),
        torch.from_numpy(boxes),
    )
    model = STN()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.15, tuple(p.shape))))
    model.fc_loc[2].weight.data.mul_(0.1)
    model.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        output, predicted = model(data)
        giou = torch.diag(generalized_box_iou(box_cxcywh_to_xyxy(predicted), box_cxcywh_to_xyxy(boxes)))
        loss = F.nll_loss(output, target) + F.smooth_l1_loss(predicted, boxes, beta=0.1) + (1 - giou).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        output, predicted = model(data)
        kept = nms(box_cxcywh_to_xyxy(boxes), boxes[:, 0] + 0.01 * torch.arange(64) / 64, 0.5)
    return losses, {"kept": kept.tolist(), "boxes": predicted.mean(0).tolist()}
