"""Fit a line with Elastic Horovod: `train.py 2 3 1` ends well once two ranks have trained, then three, then one."""

import sys
import time

import horovod.torch as hvd
import torch

STEPS = 20


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    """Train with each number of ranks; Horovod calls this again, with the last commit, whenever the ranks have changed."""
    state.steps = 0
    if hvd.rank() == 0:
        print(f"begins with {hvd.size()}", flush=True)
    while state.sizes:
        optimizer.zero_grad()
        inputs = torch.rand(8, 1)
        loss = torch.nn.functional.mse_loss(model(inputs), 3 * inputs + 1)
        loss.backward()
        optimizer.step()
        time.sleep(0.1)  # a real step computes as long
        state.steps += 1
        if hvd.size() == state.sizes[0] and state.steps >= STEPS:
            state.sizes, state.steps = state.sizes[1:], 0
            if hvd.rank() == 0:
                print(f"trained with {hvd.size()}, loss {loss.item():.2g}", flush=True)
        state.commit()


hvd.init()
model = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
train(hvd.elastic.TorchState(model, optimizer, sizes=[int(size) for size in sys.argv[1:]], steps=0))
