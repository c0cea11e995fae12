"""What stands in the folders of runs that no training has made."""


def row(epoch, train_loss, val_loss, seconds=60.0):
    return {
        "epoch": epoch,
        "train_loss": train_loss,
        "train_loss_per_token": train_loss + 0.001,
        "val_loss": val_loss,
        "val_loss_per_token": val_loss + 0.001,
        "train_tokens": 6000,
        "train_seconds": seconds,
    }
