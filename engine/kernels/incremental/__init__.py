"""Maintenance over rounds: `store` keeps rows and when they are present, `inputs` takes those from outside, `reduce` groups,
`steps` are instructions of paths, `loop` drives a batch of rounds, `sharing` has what several workers do of one."""
