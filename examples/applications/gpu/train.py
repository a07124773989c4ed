"""A small network, trained by DeepSpeed with ZeRO stage 1; each rank uses the GPU of its rank on the host. Not run by us."""

import deepspeed
import torch

STEPS, BATCH, WIDTH = 100, 32, 1024
CONFIG = {
    "train_micro_batch_size_per_gpu": BATCH,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
    "zero_optimization": {"stage": 1},
}


def main() -> None:
    """Train, and let rank 0 print the loss. DeepSpeed finds rank, size and address by mpi4py."""
    deepspeed.init_distributed(dist_backend="nccl")
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIG)
    for step in range(STEPS):
        x = torch.randn(BATCH, WIDTH, device=engine.device)
        loss = torch.nn.functional.mse_loss(engine(x), x.sum(dim=1, keepdim=True))
        engine.backward(loss)
        engine.step()
        if engine.global_rank == 0 and step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
