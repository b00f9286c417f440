"""A regressor of scikit-learn as a head: its coefficients become buffers, so that checkpoints hold no pickles."""

import torch
from sklearn.cross_decomposition import PLSRegression
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead, Rows
from ldl.labels import LabelSpace
from ldl.options import buffer, option, options


@options
class PartialLeastSquares(FittedHead):
    """Partial least squares from features to distributions; negative shares are cut off.

    Args:
        components: Directions of the features that are kept; never more than there are.
    """

    components: int = option(default=8, least=1)
    weight: Tensor = buffer()
    bias: Tensor = buffer()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("weight", torch.zeros(len(labels), in_features))
        self.register_buffer("bias", torch.full((len(labels),), 1 / len(labels)))

    def fit(self, rows: Rows, collective: Collective) -> None:
        features, target = rows.features.double().cpu().numpy(), rows.target.double().cpu().numpy()
        model = PLSRegression(min(self.components, *features.shape), scale=False).fit(features, target)
        self.weight.copy_(torch.from_numpy(model.coef_))
        self.bias.copy_(torch.from_numpy(model.predict(features[:1])[0]))
        self.bias -= self.weight @ rows.features[0].to(self.weight)

    def forward(self, features: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            shares = (features.to(self.weight) @ self.weight.T + self.bias).clamp_min(1e-6)
            return shares / shares.sum(-1, keepdim=True)
