"""Data-parallel training on CPUs: each rank has a copy of the network and a part of the data, and gloo averages the gradients.

kubectl mpi run -n 4 --slots 2 --image mpiop.invalid/pytorch:openmpi --ssh injected --upload . -- python3 train.py
"""

import socket

import torch
from mpi4py import MPI
from torch import distributed, nn

SAMPLES, FEATURES, EPOCHS = 4096, 16, 50
PORT = 29500


def connect() -> None:
    """Let PyTorch use the ranks that mpirun started; MPI only tells them where rank 0 listens."""
    world = MPI.COMM_WORLD
    address = world.bcast(socket.gethostbyname(socket.gethostname()))
    distributed.init_process_group("gloo", init_method=f"tcp://{address}:{PORT}", rank=world.rank, world_size=world.size)


def data(rank: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the part of the samples that a rank trains on: the sum of the inputs is what the network must learn."""
    inputs = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1))
    return inputs[rank::ranks], inputs.sum(dim=1, keepdim=True)[rank::ranks]


def main() -> None:
    """Train, print the loss on rank 0, and check that all ranks have the same network at the end."""
    torch.set_num_threads(1)
    torch.manual_seed(2)
    connect()
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    network = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    inputs, targets = data(rank, ranks)
    for epoch in range(EPOCHS + 1):
        loss = nn.functional.mse_loss(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0 and rank == 0:
            print(f"epoch {epoch:2}: loss {loss.item():.4f}", flush=True)
    sums = MPI.COMM_WORLD.gather(sum(parameter.sum().item() for parameter in network.parameters()))
    if sums is not None:
        same = "the same network" if len(set(sums)) == 1 else f"different networks: {sums}"
        print(f"{ranks} ranks trained {same}", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
