"""Ways to follow rounds: changes, history, views of past rounds, subscriptions."""
