"""Rank files of processes that hold several ranks each, made of the files of a job's single ranks."""

import json

from lib import jobs


def write(job, folder, groups, launcher=False, **options):
    """Writes a file per group of ranks, as its process would. `launcher`: it gives each process a number."""
    folder.mkdir(parents=True)
    for number, ranks in enumerate(groups):
        process = _Process(job, ranks, number, len(groups) if launcher else None, **options)
        name = f"rank-{number:05}.json" if launcher else f"node0-{4000 + number}.json"
        (folder / name).write_text(process.text())
    return folder


class _Process:
    def __init__(self, job, ranks, number, world_size, tid=None):
        self.pid = number if world_size else 4000 + number
        self.tid = tid
        self.files = [self._lines(jobs._RankFile(job, rank).text()) for rank in ranks]
        self.header = self._of(self.files[0], "tprof_header")[0]
        self.header["args"] |= {"pid": 4000 + number, "host": "node0", "boot_id": "boot-0"}
        self.header["args"] |= {"rank": number, "world_size": world_size}
        self.identity = world_size is None
        if self.identity:
            self.header["args"]["rank"] = None
        self._number_communicators()

    @staticmethod
    def _lines(text):
        return [json.loads(line.rstrip(",")) for line in text.splitlines() if line not in "[]"]

    @staticmethod
    def _of(lines, name):
        return [line for line in lines if line["name"] == name]

    def _number_communicators(self):
        before = 0
        for lines in self.files:
            comms = self._of(lines, "tprof_comm")
            for line in lines:
                args = line["args"]
                for holder in (args, *args.get("rows", ()), *args.get("comms", ())):
                    if holder.get("comm") is not None:
                        holder["comm"] += before
            before += len(comms)

    def text(self):
        comms = [line for lines in self.files for line in self._of(lines, "tprof_comm")]
        events = [line for lines in self.files for line in lines if line["ph"] in "XB"]
        events.sort(key=lambda line: (line["ph"] == "B", line["ts"]))
        lines = [self.header, *comms]
        if self.identity:
            args = {"rank": comms[0]["args"]["rank"], "world_size": comms[0]["args"]["nranks"]}
            lines.append(self.header | {"name": "tprof_identity", "args": args})
        lines += [*events, self._ledger(), self._footer()]
        for line in lines:
            line["pid"] = self.pid
            if self.tid is not None and line["ph"] in "XB":
                line["tid"] = self.tid
        return "[\n" + ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n]\n"

    def _ledger(self):
        ledgers = [self._of(lines, "tprof_ledger")[-1] for lines in self.files]
        args = dict(ledgers[0]["args"], ts=max(ledger["args"]["ts"] for ledger in ledgers))
        for kind in ("rows", "comms"):
            args[kind] = [entry for ledger in ledgers for entry in ledger["args"][kind]]
        return ledgers[0] | {"args": args}

    def _footer(self):
        footers = [self._of(lines, "tprof_footer")[0] for lines in self.files]
        dropped = {}
        for footer in footers:
            for reason, n in footer["args"]["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + n
        complete = all(footer["args"]["complete"] for footer in footers)
        return footers[0] | {"args": footers[0]["args"] | {"dropped": dropped, "complete": complete}}
