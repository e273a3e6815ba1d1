"""One network and one table for all tests: what one file has compiled, the others find on disk.

A network of another size, or with other settings, is another set of programs: seconds each.
So environments made for tests show four numbers and take two actions where they can, as CartPole.
"""

NETWORK = {"loss": "qr", "hidden": (8,), "particles": 4, "learning_starts": 20, "target_period": 30}
TABLE = {"memory": 4, "particles": 4, "horizon": 40}

# The same for `surefoot train`.
NETWORK_WORDS = ["--loss", "qr", "--hidden", "8", "--particles", "4", "--learning-starts", "20",
                 "--target-period", "30"]  # fmt: skip
TABLE_WORDS = ["--memory", "4", "--particles", "4", "--horizon", "40"]
