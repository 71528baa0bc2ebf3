"""Times eager PyTorch BERT encoders with random weights, FP32, on the GPU; started by gpu.py in a Python with torch.

    python benchmarks/torch_bert.py '[[1, 64], [8, 128]]'

Prints one JSON object a line: {"bert-base 1x64": {"p50_ms", "mean_ms", "back_to_back_ms"}}.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch
from transformers import BertConfig, BertModel

DIMENSIONS = {
    "bert-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "bert-large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}
RUNS = 60


@torch.no_grad()
def main() -> None:
    for name, dimensions in DIMENSIONS.items():
        model = BertModel(BertConfig(**dimensions), add_pooling_layer=False).eval().cuda()
        for batch, length in json.loads(sys.argv[1]):
            print(json.dumps({f"{name} {batch}x{length}": times(model, batch, length)}), flush=True)


def times(model: BertModel, batch: int, length: int) -> dict[str, float]:
    ids = torch.randint(1000, 30000, (batch, length))
    mask = torch.ones_like(ids)

    def once() -> None:
        # as an application would: tokens come from the CPU, the mean over the tokens goes back
        model(input_ids=ids.cuda(), attention_mask=mask.cuda()).last_hidden_state.mean(dim=1).cpu()

    for _ in range(15):
        once()
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        once()
        taken.append((time.perf_counter() - began) * 1e3)
    on_gpu, mask_on_gpu = ids.cuda(), mask.cuda()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(RUNS):
        model(input_ids=on_gpu, attention_mask=mask_on_gpu)
    torch.cuda.synchronize()
    back_to_back = (time.perf_counter() - began) / RUNS * 1e3
    return {"p50_ms": statistics.median(taken), "mean_ms": statistics.fmean(taken), "back_to_back_ms": back_to_back}


if __name__ == "__main__":
    main()
