"""Classify point clouds by PointNet: input and feature transforms, their orthogonality regularizer, max pooling."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.parallel
import torch.utils.data
from torch.autograd import Variable


class STNkd(nn.Module):
    def __init__(self, k=3):
        super(STNkd, self).__init__()
        self.conv1 = torch.nn.Conv1d(k, 8, 1)
        self.conv2 = torch.nn.Conv1d(8, 16, 1)
        self.fc1 = nn.Linear(16, 8)
        self.fc2 = nn.Linear(8, k * k)
        self.bn1 = nn.BatchNorm1d(8)
        self.bn2 = nn.BatchNorm1d(16)
        self.k = k

    def forward(self, x):
        batchsize = x.size()[0]
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = torch.max(x, 2, keepdim=True)[0]
        x = x.view(-1, 16)
        x = self.fc2(F.relu(self.fc1(x)))
        iden = (
            Variable(torch.from_numpy(np.eye(self.k).flatten().astype(np.float32)))
            .view(1, self.k * self.k)
            .repeat(batchsize, 1)
        )
        if x.is_cuda:
            iden = iden.cuda()
        x = x + iden
        return x.view(-1, self.k, self.k)


class PointNetfeat(nn.Module):
    def __init__(self, global_feat=True, feature_transform=False):
        super(PointNetfeat, self).__init__()
        self.stn = STNkd(k=3)
        self.conv1 = torch.nn.Conv1d(3, 6, 1)
        self.conv2 = torch.nn.Conv1d(6, 24, 1)
        self.bn1 = nn.BatchNorm1d(6)
        self.bn2 = nn.BatchNorm1d(24)
        self.global_feat = global_feat
        self.feature_transform = feature_transform
        if self.feature_transform:
            self.fstn = STNkd(k=6)

    def forward(self, x):
        n_pts = x.size()[2]
        trans = self.stn(x)
        x = x.transpose(2, 1)
        x = torch.bmm(x, trans)
        x = x.transpose(2, 1)
        x = F.relu(self.bn1(self.conv1(x)))
        if self.feature_transform:
            trans_feat = self.fstn(x)
            x = torch.bmm(x.transpose(2, 1), trans_feat).transpose(2, 1)
        else:
            trans_feat = None
        pointfeat = x
        x = self.bn2(self.conv2(x))
        x = torch.max(x, 2, keepdim=True)[0]
        x = x.view(-1, 24)
        if self.global_feat:
            return x, trans, trans_feat
        else:
            x = x.view(-1, 24, 1).repeat(1, 1, n_pts)
            return torch.cat([x, pointfeat], 1), trans, trans_feat


class PointNetDenseCls(nn.Module):
    def __init__(self, k=2, feature_transform=False):
        super(PointNetDenseCls, self).__init__()
        self.k = k
        self.feat = PointNetfeat(global_feat=False, feature_transform=feature_transform)
        self.conv1 = torch.nn.Conv1d(30, 12, 1)
        self.conv2 = torch.nn.Conv1d(12, self.k, 1)
        self.bn1 = nn.BatchNorm1d(12)

    def forward(self, x):
        batchsize = x.size()[0]
        n_pts = x.size()[2]
        x, trans, trans_feat = self.feat(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.conv2(x)
        x = x.transpose(2, 1).contiguous()
        x = F.log_softmax(x.view(-1, self.k), dim=-1)
        x = x.view(batchsize, n_pts, self.k)
        return x, trans, trans_feat


def feature_transform_regularizer(trans):
    d = trans.size()[1]
    eye = torch.eye(d)[None, :, :]
    if trans.is_cuda:
        eye = eye.cuda()
    loss = torch.mean(torch.norm(torch.bmm(trans, trans.transpose(2, 1)) - eye, dim=(1, 2)))
    return loss


class Shapes(torch.utils.data.Dataset):
    def __init__(self, npoints=20, size=32, seed=0):
        rng = np.random.RandomState(seed)
        self.points = rng.randn(size, npoints, 3).astype(np.float32)
        self.points /= np.linalg.norm(self.points, axis=-1, keepdims=True)
        self.points[:, ::2, 2] *= 0.3

    def __getitem__(self, index):
        point_set = self.points[index]
        seg = (np.abs(point_set[:, 2]) > 0.25).astype(np.int64) + 1
        point_set = point_set - np.expand_dims(np.mean(point_set, axis=0), 0)
        dist = np.max(np.sqrt(np.sum(point_set**2, axis=1)), 0)
        return torch.from_numpy(point_set / dist), torch.from_numpy(seg)

    def __len__(self):
        return len(self.points)


def main(steps=5):
    rng = np.random.RandomState(1)
    dataloader = torch.utils.data.DataLoader(Shapes(), batch_size=8, shuffle=False, num_workers=int(0))
    classifier = PointNetDenseCls(k=2, feature_transform=True)
    for m in classifier.modules():
        if isinstance(m, (nn.Conv1d, nn.Linear)):
            m.weight.data.copy_(torch.FloatTensor(rng.randn(*m.weight.shape)) * 0.3)
            m.bias.data.fill_(0.0)
    optimizer = torch.optim.SGD(classifier.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)
    losses = []
    while len(losses) < steps:
        for i, data in enumerate(dataloader, 0):
            points, target = data
            points = points.transpose(2, 1)
            points, target = Variable(points), Variable(target)
            optimizer.zero_grad()
            classifier = classifier.train()
            pred, trans, trans_feat = classifier(points)
            pred = pred.view(-1, 2)
            target = target.view(-1, 1)[:, 0] - 1
            loss = F.nll_loss(pred, target)
            loss += feature_transform_regularizer(trans_feat) * 0.001
            loss.backward()
            optimizer.step()
            losses.append(loss.data.item())
            if len(losses) == steps:
                break
        scheduler.step()
    classifier = classifier.eval()
    pred, trans, _ = classifier(points)
    pred_np = pred.data.max(2)[1].cpu().data.numpy()
    target_np = target.view(8, -1).cpu().data.numpy()
    ious = []
    for shape_idx in range(target_np.shape[0]):
        for part in range(2):
            inter = np.sum(np.logical_and(pred_np[shape_idx] == part, target_np[shape_idx] == part))
            union = np.sum(np.logical_or(pred_np[shape_idx] == part, target_np[shape_idx] == part))
            ious.append(1.0 if union == 0 else inter / float(union))
    return losses, {"iou": ious, "transform": trans.data.cpu().numpy()}
