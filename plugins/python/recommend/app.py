"""Products in the order in which a user is likely to want them, the best first.

A request is `{"userId": 1, "productIds": [7, 8, ..]}`. The features of the user and of the products
lie in the store `features`: one request gets those of the user, one gathers those of all products.
The numbers of the products and the scores stay on the host. The state has the ids.

With the setting `table` the products' features come from that asset in place of the store.
"""

from gristmill_plugin import (
    Context,
    Dtype,
    Internal,
    InvalidInput,
    Outputs,
    Prepared,
    Processor,
    Records,
    Request,
    Response,
    Tensor,
    Unprocessable,
    export,
    store,
    tables,
)
from gristmill_plugin import numpy as np

STORE = "features"
FEATURES = 16
PRODUCTS_MAX = 1000

#: The features of a product that has none. All are standardised, so this is the mean.
MISSING = 0.0


@export
class Recommend(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        ids = request.json_tensor("/productIds", Dtype.INT64)
        if len(ids.shape) != 1 or not 1 <= ids.shape[0] <= PRODUCTS_MAX:
            count = ids.shape[0] if len(ids.shape) == 1 else "no flat list of"
            raise InvalidInput(f"productIds has {count} ids: must be 1 to {PRODUCTS_MAX}")
        user = user_features(request)
        products = product_features(context, ids)
        rows = Tensor.from_bytes([ids.shape[0], FEATURES], Dtype.FLOAT32, user * ids.shape[0])
        return Prepared({"user": rows, "product": products}, ids.tobytes())

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        ids = np.frombuffer(state, np.int64)
        scores = np.asarray(outputs.tensor("score", [ids.size, 1])).ravel()
        best = np.argsort(scores, descending=True)
        items = Records(productId=np.take(ids, best), score=np.take(scores, best))
        return Response.json({"items": items})


def user_features(request: Request) -> bytes:
    """The features of the request's user: 16 float32."""
    user = request.json("/userId")
    if type(user) is not int or not 0 <= user < 2**63:
        raise InvalidInput(f"userId is {user!r:.40}, not an integer from 0 to 2^63 - 1")
    features = store.get(STORE, f"user:{user}")
    if not features:
        raise Unprocessable(f"userId is {user}: this user has no features")
    if len(features) != 4 * FEATURES:
        raise Internal(f"user:{user} has {len(features)} bytes, not {FEATURES} float32")
    return features


def product_features(context: Context, ids: Tensor) -> Tensor:
    """The features of these products, [products, 16]."""
    table = context.settings.get("table")
    if table is not None:
        return tables.gather(table, ids, FEATURES, MISSING)
    return store.gather(STORE, ids, FEATURES, MISSING, prefix="product:")
