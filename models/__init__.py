"""The policy-value network, its evaluators and checkpoints. Imports nothing: a CPU worker needs no torch."""
