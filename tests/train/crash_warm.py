"""Imported once by the process that trainers are forked from: what each of them would otherwise import and compile."""

import torch

from envs import engine_for, load_variant
from models.evaluator import export_graph
from models.network import GameSpec, NetworkConfig, untrained_network
from train import loop  # noqa: F401
from train.warm_up import warm_up

torch.set_num_threads(1)  # a pool of threads would not survive the fork
_GAME = engine_for(load_variant("gardner"))
export_graph(untrained_network(GameSpec.of(_GAME), NetworkConfig(blocks=1, channels=4), seed=1))
warm_up()
