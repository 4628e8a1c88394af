"""TorchRL: losses of actors and critics with their gradients, estimates of advantages, buffers, transforms."""

import torch
from seeded import array, fill, integers
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.data import ListStorage, ReplayBuffer
from torchrl.modules import MLP, ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
from torchrl.objectives.value import GAE, TD1Estimator, TDLambdaEstimator


def answers():
    """Return losses, gradients, advantages and contents of buffers."""
    found = {}
    reward = array(4, 7, 1, seed=5)
    done = integers(5, 4, 7, 1, seed=6) == 0
    data = TensorDict(
        {
            "observation": array(4, 7, 3),
            "action": array(4, 7, 2, seed=3).tanh() * 0.8,
            "next": {"observation": array(4, 7, 3, seed=4), "reward": reward, "done": done, "terminated": done},
        },
        batch_size=[4, 7],
    )
    value = ValueOperator(fill(MLP(in_features=3, out_features=1, num_cells=[8])), in_keys=["observation"])

    def losses(name, module, batch):
        out = module(batch)
        keys = [key for key in out.keys() if key.startswith("loss")]  # noqa: SIM118
        sum(out[key] for key in keys).backward()
        found.update({f"{name} {key}": out[key].detach().numpy() for key in keys})
        gradients = [(key, p.grad) for key, p in module.named_parameters() if p.grad is not None]
        found.update({f"{name} gradient {key}": g.numpy() for key, g in gradients})

    for estimator in (
        GAE(gamma=0.9, lmbda=0.8, value_network=value),
        TDLambdaEstimator(gamma=0.9, lmbda=0.7, value_network=value),
        TD1Estimator(gamma=0.9, value_network=value),
    ):
        out = estimator(data.clone())
        found[f"{type(estimator).__name__}"] = out["advantage"].detach().numpy()
        found[f"{type(estimator).__name__} target"] = out["value_target"].detach().numpy()

    net = fill(nn.Sequential(MLP(in_features=3, out_features=4, num_cells=[8]), NormalParamExtractor()))
    actor = ProbabilisticActor(
        TensorDictModule(net, ["observation"], ["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        return_log_prob=True,
    )
    batch = GAE(gamma=0.9, lmbda=0.8, value_network=value)(data.clone()).detach().reshape(-1)
    batch["action_log_prob"] = actor.get_dist(batch).log_prob(batch["action"]).detach() + 0.1
    losses("ppo", ClipPPOLoss(actor, value, entropy_bonus=False), batch)

    q = QValueActor(
        fill(MLP(in_features=3, out_features=3, num_cells=[8])), in_keys=["observation"], action_space="categorical"
    )
    chosen = data.clone().reshape(-1)
    chosen["action"] = integers(3, 28, seed=8)
    dqn = DQNLoss(q, action_space="categorical", delay_value=True)
    dqn.make_value_estimator(gamma=0.9)
    losses("dqn", dqn, chosen)
    update = SoftUpdate(dqn, eps=0.9)
    with torch.no_grad():
        for p in dqn.parameters():
            p.add_(0.1)
    update.step()
    found.update({f"target {key}": v.numpy() for key, v in dqn.target_value_network_params.flatten_keys(".").items()})

    buffer = ReplayBuffer(storage=ListStorage(20), batch_size=5)
    buffer.extend(data.reshape(-1)[:12])
    found["buffer"] = buffer[:]["observation"].numpy()
    found["drawn"] = torch.tensor([len(buffer), *buffer.sample().shape]).numpy()
    return found
