"""Downloads, which are checked before they count."""

from pathlib import Path

from reprt.files import file_lock
from reprt.progress import byte_line

# Seconds for a connection, and then for each piece of the body.
TIMEOUT = 20
_CHUNK = 1 << 18


def download(url: str, path: Path, known_hash: str) -> Path:
    """Downloads a file whose hash is known to `path`, unless the right file is there.

    It gets its name when its hash is right: a sha256, or an MD5 as `md5:...`. One
    process at a time downloads it. Any failure is an `OSError`.
    """
    # Only a download needs it, which is of the extra `train`.
    import pooch

    pooch.get_logger().setLevel("WARNING")

    def fetch(*arguments):
        # pooch sets the total.
        with byte_line(path.name, 1) as line:
            pooch.HTTPDownloader(line, _CHUNK, timeout=TIMEOUT)(*arguments)

    with file_lock(Path(f"{path}.lock")):
        try:
            pooch.retrieve(
                url,
                known_hash,
                path.name,
                path.parent,
                downloader=fetch,
            )
        except (OSError, ValueError) as error:
            raise OSError(
                f"{url} cannot be downloaded: {_root(error)}"
            ) from error
    return path


def _root(error: BaseException) -> BaseException:
    """The first cause, which libraries have wrapped in errors of their own."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return error
