"""What rounds changed, for whoever follows: changes, history, views of past rounds, subscriptions."""
