"""Products in the order of their scores for a user: FastAPI with redis-py, NumPy and ONNX Runtime."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import redis.asyncio as redis
import work
from fastapi import FastAPI
from pydantic import BaseModel

MODEL = work.ROOT / "models/recommend/recommend.onnx"

session = work.load(MODEL)
# A pool that raises when it is empty would answer some of 300 clients with 500.
pool = redis.BlockingConnectionPool.from_url(os.environ["REDIS_URL"], max_connections=64, timeout=30)
store = redis.Redis.from_pool(pool)
app = FastAPI()


class Wish(BaseModel):
    userId: int
    productIds: list[int]


class Item(BaseModel):
    productId: int
    score: float


class Ranking(BaseModel):
    items: list[Item]


@app.post("/recommend")
async def recommend(wish: Wish) -> Ranking:
    keys = [f"user:{wish.userId}", *(f"product:{product}" for product in wish.productIds)]
    user, *products = (np.frombuffer(value, dtype="<f4") for value in await store.mget(keys))
    users = np.broadcast_to(user, (len(products), user.size))
    inputs = {"user": np.ascontiguousarray(users), "product": np.stack(products)}
    scores = session.run(None, inputs)[0].reshape(-1)
    order = np.argsort(-scores, kind="stable")
    items = [Item(productId=wish.productIds[at], score=scores[at]) for at in order]
    return Ranking(items=items)
