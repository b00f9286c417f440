"""Train, test, predict or cross-validate: ``python train.py --help``."""

from ldl.command import main

if __name__ == "__main__":
    main()
