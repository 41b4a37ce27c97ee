"""VGG, NiN, GoogLeNet, ResNet and DenseNet beside each other."""
