"""For LiteLLM's proxy: one key with a budget. Its own keys need a database, which would not change what is measured."""

import os

from litellm.proxy._types import UserAPIKeyAuth


async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, token="storm", max_budget=float(os.environ["STORM_CEILING_USD"]), spend=0.0)
