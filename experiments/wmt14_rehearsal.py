"""Rehearses experiments/wmt14_en_fr.toml on a part of its size, with generated text.

    python experiments/wmt14_rehearsal.py FOLDER [PERCENT]

packs archives of WMT'14's names, formats and nesting with PERCENT (usually 1) of their
pairs and serves them on this machine. The recipe's own command then runs to its end
twice, with a tiny model. The first time nothing disturbs it, and each phase is
measured. The second time a connection is cut, the server answers with error 503 once,
and a kill ends the command in every phase; it is given again each time. Both have to
make the same files. FOLDER takes some 500 MB for each per cent.
"""

import argparse
import collections
import contextlib
import csv
import dataclasses
import functools
import gzip
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import numpy as np

from reprt.data.corpora import wmt14

SCRIPT = Path(__file__).resolve()
RECIPE = SCRIPT.with_name("wmt14_en_fr.toml")
SETTINGS = """
models.base.preset=transformer-tiny batching.size=512 training.steps=12
training.keep_every=4 training.checkpoint_minutes=0.01 schedule.warmup_steps=4
"""
# About a hundredth of each archive's pairs, those of validation and test included.
PAIRS = {
    "europarl-v7": 20_080,
    "commoncrawl": 32_440,
    "un": 128_870,
    "news-commentary-v9": 1_830,
    "giga-fren": 225_200,
    "newstest2013": 30,
    "newstest2014": 30,
}
WORDS, LONGEST = 500_000, 240
MEAN_WORDS = (25, 29)  # of English and of French
BLOCK = 20_000  # pairs that are generated at a time
SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_SUMS = 0.02, 2.0
SECONDS_BEFORE_A_KILL = 0.05  # of the processor, within the phase


def main():
    """Reads the command line, makes the archives, runs twice, compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for archives, caches and runs")
    parser.add_argument("percent", type=float, nargs="?", default=1.0)
    options = parser.parse_args()
    folder = options.folder.resolve()
    parts = make_archives(folder / "archives", options.percent)
    with Server(folder / "archives") as server:
        described = folder / "parts.json"
        described.write_text(
            json.dumps([dataclasses.asdict(server.here(part)) for part in parts])
        )
        undisturbed = Rehearsal(folder / "undisturbed", described)
        undisturbed.start()
        if status := undisturbed.watch():
            sys.exit(f"The undisturbed run ended with status {status}.")
        undisturbed.report()
        disturbed = Rehearsal(folder / "disturbed", described)
        disturb(disturbed, server)
        disturbed.report()
    if undisturbed.made() != disturbed.made():
        sys.exit("The disturbed run made other files than the undisturbed one.")
    sha256 = hashlib.sha256(json.dumps(disturbed.made()).encode()).hexdigest()
    print(f"Both made the same {len(disturbed.made())} files: {sha256[:16]}")


def disturb(run: "Rehearsal", server: "Server"):
    """Gives the command until it reaches its end, whatever comes between."""
    server.troubles = {
        "training-parallel-commoncrawl.tgz": "503",
        "training-parallel-un.tgz": "cut",
        "training-giga-fren.tar": "stall",
    }
    kills = collections.deque(
        [
            "unpack un",
            "download training-giga-fren.tar",
            "clean giga-fren",
            "learn BPE",
            "shard 2",
            r"checkpoint ([2-9]|1\d)",  # the first is there by then
            "score",
        ]
    )
    for _ in range(len(kills) + len(server.troubles)):
        run.start()
        status = run.watch(kills, server.stalled)
        print(f"status {status}, last phase: {run.ended_in}", flush=True)
        if status == 0:
            break
    if status or kills or server.troubles:
        sys.exit(f"Status {status}; never came: {[*kills]}, {server.troubles}.")


class Rehearsal:
    """One cache and run folder, and what the command's processes took."""

    def __init__(self, folder: Path, parts: Path):
        folder.mkdir(parents=True)
        (folder / "reprt").symlink_to(SCRIPT)  # a command's process, by its name
        self.folder, self.parts = folder, parts
        self.cache, self.out = folder / "cache", folder / "out"
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self.memory: dict[str, int] = collections.defaultdict(int)
        self.disk = self.wall = self.used = self.most = self.starts = 0
        self.next_sum = 0.0
        self.ended_in = ""

    def start(self):
        """Starts the command; the phases that it goes through come on a pipe."""
        self.starts += 1
        environment = {**os.environ, "REPRT_CACHE": str(self.cache)}
        environment |= {"no_proxy": "127.0.0.1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, str(self.folder / "reprt"), str(self.parts)]
        command += ["train", str(RECIPE), "--out", str(self.out)]
        command += [f"--set={each}" for each in SETTINGS.split()]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=log
            )
        os.set_blocking(self.process.stdout.fileno(), False)

    def watch(self, kills=(), stalled=None):
        """Waits for its end, or kills it in a phase that the first of `kills` fits."""
        begun, open_phases, rest, id = time.monotonic(), [("start", 0.0)], b"", None
        while id != self.process.pid:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            id, status, used = os.wait4(self.process.pid, os.WNOHANG)
            *lines, rest = (rest + (self.process.stdout.read() or b"")).split(b"\n")
            for line in lines:
                self._note(json.loads(line), open_phases)
            phase, since = open_phases[-1]
            if id == 0:
                self._look(phase)
            if id == 0 and kills and re.fullmatch(kills[0], phase):
                middle = self._processor_seconds() > since + SECONDS_BEFORE_A_KILL
                if stalled.is_set() if phase.startswith("download") else middle:
                    kills.popleft()
                    self.process.kill()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process.stdout.close()
        self.wall += time.monotonic() - begun
        self.used += used.ru_utime + used.ru_stime
        self.most = max(self.most, used.ru_maxrss * 1024)
        return self.process.returncode

    def _note(self, event, open_phases):
        if "seconds" not in event:
            self.ended_in = event["phase"]
            open_phases.append((event["phase"], event["since"]))
            return
        phase, _ = open_phases.pop()
        self.seconds[phase] = self.seconds.get(phase, 0) + event["seconds"]
        self.processor[phase] = self.processor.get(phase, 0) + event["processor"]

    def _processor_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().split()
        return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")

    def _look(self, phase):
        """Notes the memory that is the process' own, and the bytes on the disk."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            table = dict(line.split(":", 1) for line in lines)
            own = int(table["RssAnon"].split()[0]) * 1024
            self.memory[phase] = max(self.memory[phase], own)
        except (OSError, KeyError):
            pass  # it has ended
        if time.monotonic() > self.next_sum:
            self.next_sum = time.monotonic() + SECONDS_BETWEEN_SUMS
            self.disk = max(self.disk, sum(sizes(self.cache)))

    def report(self):
        """Prints what it took; the phases are those that came to their end."""
        print(
            f"{self.folder.name}: {self.starts} starts, {self.wall:.0f} s, "
            f"{self.used:.0f} CPU s, at most {self.most / 1e6:.0f} MB of memory and "
            f"{self.disk / 1e6:.0f} MB on disk, {sum(sizes(self.cache)) / 1e6:.0f} MB "
            f"in the cache at the end"
        )
        for phase, seconds in self.seconds.items():
            print(
                f"  {phase}: {seconds:.2f} s, {self.processor[phase]:.2f} CPU s, "
                f"{self.memory.get(phase, 0) / 1e6:.0f} MB"
            )
        sys.stdout.flush()

    def made(self) -> dict[str, str]:
        """The sha256 of all that is in the cache, of the log and of the weights."""
        found = {
            str(path.relative_to(self.cache)): sha256_of(path.read_bytes())
            for path in sorted(self.cache.rglob("*"))
            if path.is_file() and path.stat().st_size  # pooch leaves empty ones
        }
        with zipfile.ZipFile(self.out / "base" / "model.keras") as model:
            found["weights"] = sha256_of(model.read("model.weights.h5"))
        with open(self.out / "base" / "log.csv") as file:
            for row in csv.DictReader(file):
                losses = {name: row[name] for name in row if "seconds" not in name}
                found[f"epoch {row['epoch']}"] = json.dumps(losses)
        return found


def sizes(folder: Path):
    """Yields the bytes of each file in a folder that others are changing."""
    for path in folder.rglob("*"):
        try:
            yield path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            pass


def sha256_of(data: bytes) -> str:
    """Returns the sha256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder's archives, each trouble once.

    Attributes:
        troubles: by archive, `"503"`; `"cut"`, after half of it; or `"stall"` there.
        stalled: set once an answer has stalled.
    """

    daemon_threads = True

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.troubles = folder, {}
        self.stalled = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def here(self, part: wmt14.Part) -> wmt14.Part:
        """Returns a part with the address, size and hash that it has here."""
        name = part.url.rpartition("/")[2]
        kind = "md5" if part.known_hash.startswith("md5:") else "sha256"
        with open(self.folder / name, "rb") as file:
            found = hashlib.file_digest(file, kind).hexdigest()
            size = file.tell()
        print(f"{part.name}: {size / 1e6:.1f} MB")
        return dataclasses.replace(
            part,
            url=f"http://127.0.0.1:{self.server_port}/{name}",
            size=part.size and size,
            known_hash=f"{kind}:{found}",
        )


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with a file, or with the rest of it."""

    def do_GET(self):
        """Sends it, if no trouble was asked for."""
        name, wanted = self.path[1:], self.headers.get("Range")
        trouble = self.server.troubles.pop(name, None)
        if trouble == "503":
            self.send_error(503)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        with open(self.server.folder / name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(size - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.end_headers()
            file.seek(start)
            end = size // 2 if trouble else size
            while block := file.read(min(2**16, end - file.tell())):
                self.wfile.write(block)
        if trouble == "stall":
            self.server.stalled.set()
            with contextlib.suppress(ConnectionError):
                self.rfile.read(1)  # until the other end has gone

    def log_message(self, *_):
        """Says nothing."""


def make_archives(folder: Path, percent: float) -> list[wmt14.Part]:
    """Packs generated pairs as WMT'14 has them, other files among them."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfglmnprstvé" for b in "a e i o u an er ion".split()]
    lengths = rng.integers(1, 5, WORDS)
    drawn = np.split(rng.choice(syllables, lengths.sum()), lengths.cumsum()[:-1])
    words = np.array(["".join(each) for each in drawn], object)
    zipf = np.cumsum(1 / np.arange(1, WORDS + 1))
    parts = [*wmt14.TRAIN, wmt14.DEV, wmt14.TEST]
    for part in parts:
        pairs = round(PAIRS[part.name] * percent)
        files = [folder / str(side) for side in range(2)]
        with files[0].open("wb") as source, files[1].open("wb") as target:
            for start in range(0, pairs, BLOCK):
                few = min(BLOCK, pairs - start)
                for file, lines in zip((source, target), block(rng, words, zipf, few)):
                    file.write("".join(f"{line}\n" for line in lines).encode())
        pack(part, files, folder)
    return parts


def block(rng, words, zipf, pairs: int):
    """Yields both sides of some pairs, of like lengths; a hundredth has no target."""
    lengths = rng.gamma(2, 1 / 2, pairs)
    for side, mean in enumerate(MEAN_WORDS):
        counts = (lengths * mean).astype(int).clip(1, LONGEST)
        drawn = words[np.searchsorted(zipf, rng.random(counts.sum()) * zipf[-1])]
        sentences = np.split(drawn, counts.cumsum()[:-1])
        lines = [" ".join(each).capitalize() + " ." for each in sentences]
        if side and pairs > 100:
            lines[::100] = [""] * len(lines[::100])
        yield lines


def pack(part: wmt14.Part, files: list[Path], folder: Path):
    """Packs two files of lines as the members of a part, and removes them."""
    path = folder / part.url.rpartition("/")[2]
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for member in part.members:
            file = files[".fr." in f"{member}."]
            raw = file.read_bytes()
            if member.endswith(".gz"):
                raw = gzip.compress(raw)
            elif member.endswith(".sgm"):
                lines = raw.decode().splitlines()
                raw = "".join(f'<seg id="1">{line}</seg>\n' for line in lines).encode()
            packed = folder / "member"
            packed.write_bytes(raw)
            tar.add(packed, member)
            tar.add(packed, f"of/another/{member}")
            packed.unlink()
    for file in files:
        file.unlink()


def as_command(parts: str, *arguments: str) -> int:
    """The recipe's command, with the archives' addresses here, telling its phases."""
    from reprt.analysis import evaluation
    from reprt.cli import main as command
    from reprt.data import encoding
    from reprt.data.corpora.corpus import Corpus
    from reprt.data.corpora.lines import Lines
    from reprt.data.tokenizers import bpe
    from reprt.jobs import train
    from reprt.training import trainer
    from reprt.training.trainer import Trainer

    found = [
        wmt14.Part(**{**each, "members": tuple(each["members"])})
        for each in json.loads(Path(parts).read_text())
    ]
    wmt14.TRAIN, (wmt14.DEV, wmt14.TEST) = tuple(found[:-2]), found[-2:]
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the command itself says goes to the log
    within = [0.0, 0.0]  # of the phases that ended within the present one

    def tell(owner, name, phase):
        function, count = getattr(owner, name), 0

        @functools.wraps(function)
        def telling(*given, **named):
            nonlocal count, within
            count += 1
            label = phase(count, *given)
            outside, within = within, [0.0, 0.0]
            begun = time.monotonic(), time.process_time()
            print(json.dumps({"phase": label, "since": begun[1]}), file=told)
            try:
                return function(*given, **named)
            finally:
                wall, cpu = time.monotonic() - begun[0], time.process_time() - begun[1]
                own = {"seconds": wall - within[0], "processor": cpu - within[1]}
                within = [outside[0] + wall, outside[1] + cpu]
                print(json.dumps({"phase": label, **own}), file=told)

        setattr(owner, name, telling)

    def always(label):
        return lambda *_: label

    tell(wmt14, "download", lambda _, url, *rest: f"download {url.split('/')[-1]}")
    tell(wmt14, "unpack", lambda _, archive, into, *rest: f"unpack {into.name}")
    tell(wmt14, "_append", lambda _, part, *rest: f"clean {part.name}")
    read = Lines.read
    Lines.read = lambda path: read(path)  # a class method, which has no place for ours
    tell(Lines, "read", always("find lines"))
    Lines.read = staticmethod(Lines.read)
    tell(bpe, "learnt_once", always("hash for BPE"))
    tell(bpe, "learn_model", always("learn BPE"))
    tell(encoding, "_cached_rows", always("find shards"))
    tell(encoding, "write_rows", lambda count, *_: f"shard {count}")
    tell(Corpus, "digest", always("digest of the text"))
    tell(trainer, "save_checkpoint", lambda count, *_: f"checkpoint {count}")
    tell(Trainer, "__init__", always("build the model"))
    tell(Trainer, "calibrate", always("calibrate"))
    tell(Trainer, "train_epoch", always("train"))
    tell(Trainer, "evaluate", always("validate"))
    tell(train, "_results", always("score"))
    tell(evaluation, "prefix_loss", always("prefix loss"))
    return command(arguments)


if __name__ == "__main__":
    if Path(sys.argv[0]).name == "reprt":
        sys.exit(as_command(*sys.argv[1:]))
    main()
