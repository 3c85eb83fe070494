"""NN-EVCLUS: a neural network that learns the masses."""
