"""What a trained model knows: losses, scores, and whether it looks ahead."""
