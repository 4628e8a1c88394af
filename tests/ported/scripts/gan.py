"""Train a generative adversarial network of linear layers on the handwritten digits."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.autograd import Variable
from torch.utils.data import DataLoader

LOSSES_FALL = False  # two networks play against each other

cuda = bool(torch.cuda.is_available())
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor


class Generator(nn.Module):
    def __init__(self, latent_dim=10, img_shape=(1, 8, 8)):
        super().__init__()
        self.img_shape = img_shape

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent_dim, 32, normalize=False), *block(32, 64), nn.Linear(64, int(np.prod(img_shape))), nn.Tanh()
        )

    def forward(self, z):
        img = self.model(z)
        return img.view(img.size(0), *self.img_shape)


class Discriminator(nn.Module):
    def __init__(self, img_shape=(1, 8, 8)):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(int(np.prod(img_shape)), 64),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 32),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(32, 1),
            nn.Sigmoid(),
        )

    def forward(self, img):
        return self.model(img.view(img.size(0), -1))


def main(steps=5):
    rng = np.random.default_rng(0)
    adversarial_loss = torch.nn.BCELoss()
    generator, discriminator = Generator(), Discriminator()
    for model in (generator, discriminator):
        for p in model.parameters():
            p.data.copy_(torch.from_numpy(rng.normal(0, 0.1, p.shape).astype("float32")))
    if cuda:
        generator.cuda()
        discriminator.cuda()
        adversarial_loss.cuda()
    images = [((image / 8 - 1)[None].astype("float32"), label) for image, label in zip(*load_digits(return_X_y=True))]
    dataloader = DataLoader([(image.reshape(1, 8, 8), label) for image, label in images], batch_size=32, shuffle=False)
    optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))

    g_losses, d_losses = [], []
    for i, (imgs, _) in enumerate(dataloader):
        if i == steps:
            break
        valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
        fake = Variable(Tensor(imgs.size(0), 1).fill_(0.0), requires_grad=False)
        real_imgs = Variable(imgs.type(Tensor))

        optimizer_G.zero_grad()
        z = Variable(Tensor(rng.normal(0, 1, (imgs.shape[0], 10)).astype("float32")))
        gen_imgs = generator(z)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        real_loss = adversarial_loss(discriminator(real_imgs), valid)
        fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()
        g_losses.append(g_loss.item())
        d_losses.append(d_loss.item())
    return g_losses, {"discriminator": d_losses}
