"""Credentials in addresses: refused, because a configuration is written down and shown."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

#: Keys of queries that hold a right: signed URLs of S3, Google and Azure, and tokens.
_RIGHTS = ("signature", "sig", "token", "password", "secret", "credential", "accesskey", "apikey")


def refuse_secret(url: str | None, key: str) -> None:
    """A ValueError that does not repeat the secret."""
    if url is None or "://" not in url:
        return
    try:
        parts = urlsplit(url)
        secret = bool(parts.password) or any(
            name.lower().replace("-", "").replace("_", "").endswith(_RIGHTS)
            for name, _ in parse_qsl(parts.query)
        )
    except ValueError as error:
        raise ValueError(f"{key} is not a URL: {type(error).__name__}.") from error
    if secret:
        raise ValueError(
            f"{key} holds credentials, which would be kept in the manifest and in logs. Leave them "
            "out and set them where the job runs (AWS_ACCESS_KEY_ID and so on), or copy the data."
        )
