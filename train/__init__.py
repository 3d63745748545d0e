"""Training and measurement: config, search, self-play, replay, learner, loop, arena, piece values."""
