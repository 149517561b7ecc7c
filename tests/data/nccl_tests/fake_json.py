# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204, T201, PTH123, PLR0917
"""The report that -J writes: version 1, 2 or 3, with all their quirks."""

import os
import sys
import time

from fake_columns import statistics

_CLOCK = "%Y-%m-%d %H:%M:%S"


class NoReport:
    """Nobody asked for a report."""

    def device(self, *_):
        pass

    def begin_results(self):
        pass

    def result(self, *_):
        pass

    def flush(self):
        pass

    def end(self, *_):
        pass


class Report:
    """Written piece by piece, so that one that dies leaves a document without its end."""

    def __init__(self, model):
        self._model, self._version = model, model.version.json
        self._file = _open(model.flags.J)
        self._between = ""
        self._put("{")
        self._key("version", str(self._version))
        self._key("start_time", quoted(time.strftime(_CLOCK)))
        self._key("args", listed(map(quoted, sys.argv)))
        self._key("env", listed(quoted(f"{k}={v}") for k, v in os.environ.items()))
        self._key("nccl_version", str(model.library))
        self._key("config", "{")
        self._between = ""
        for name, value in self._config():
            self._key(name, value)
        self._key("devices", "[")
        self._between = ""

    def _config(self):
        flags = self._model.flags
        yield "nthreads", str(flags.t)
        yield "ngpus", str(flags.g)
        yield "minimum_bytes", str(flags.b)
        yield "maximum_bytes", str(flags.e)
        yield ("step_factor", str(flags.f)) if flags.f > 1 else ("step_bytes", str(flags.i))
        yield "warmup_iters", str(flags.w)
        yield "iterations", str(flags.n)
        yield "aggregated_iterations", str(flags.m)
        yield "validation", str(flags.c)
        yield "graph", str(flags.G)
        yield "blocking_collectives", boolean(flags.z)
        if self._version >= 2:
            yield "per_iter_timing", boolean(flags.I)
        if self._version >= 3:
            yield "per_iter_skip", str(flags.K)
        yield "parallel_init", boolean(flags.p)

    def device(self, rank, pid, host, device, bus, gpu):
        """The first GPU of a process; those that follow are not told."""
        fields = {
            "rank": str(rank),
            "group": "0",
            "pid": str(pid),
            "hostname": quoted(host),
            "device": str(device),
            "device_hex": quoted(bus),
            "device_info": quoted(gpu),
        }
        self._item(mapped(fields))

    def begin_results(self):
        self._put("]}")
        self._between = ","
        self._key("results", "[")
        self._between = ""

    def result(self, row, halves):
        """One row."""
        fields = {
            "size": str(row.size),
            "count": str(row.count),
            "type": quoted(row.type),
            "redop": quoted(row.op),
            "root": quoted(f"{row.root:6d}"),
        }
        for name, half in zip(("out_of_place", "in_place"), halves, strict=True):
            fields[name] = self._half(half)
            if self._model.flags.I and half is not None:
                fields[f"{name}_per_iter"] = self._iterations(half)
        fields["actual_iterations"] = str(self._model.flags.n)
        fields["experiment_name"] = quoted(self._model.program)
        self._item(mapped(fields))

    def _half(self, half):
        if half is None:
            return "null"
        fields = {
            "cpu_time" if self._model.flags.C else "time": double(half.time_us),
            "alg_bw": double(half.algbw),
            "bus_bw": double(half.busbw),
            "nwrong": "null" if half.wrong is None else double(half.wrong),
        }
        return mapped(fields)

    def _iterations(self, half):
        fields = {name: double(value) for name, value in statistics(half.kept).items()}
        if self._version >= 3:
            fields = {"skipped_iterations": str(self._model.flags.K), **fields}
        fields["times_us"] = listed(map(double, half.slowest))
        if len(half.times) > 1:
            fields["per_process_max_times_us"] = listed(
                listed(map(double, one)) for one in half.times
            )
        return mapped(fields)

    def flush(self):
        """What has been written so far gets into the file, ending anywhere."""
        self._put(',{"size":')
        self._file.flush()

    def end(self, errors, average, passed, last_error):
        """The footer, whose keys the first version misspells."""
        self._put("]")
        self._between = ","
        misspelt = self._version == 1
        bandwidth = "bandwidith" if misspelt else "bandwidth"
        self._key("out_of_bounds", mapped({"count": str(errors), "okay": boolean(not errors)}))
        okay = quoted("unchecked") if passed is None else boolean(passed)
        self._key(
            "average_bus_bandwidith" if misspelt else "average_bus_bandwidth",
            mapped({bandwidth: double(average), "okay": okay}),
        )
        self._key("errors", listed([quoted(last_error)]))
        self._key("end_time", quoted(time.strftime(_CLOCK)))
        self._put("}")
        self._file.close()

    def _key(self, name, value):
        self._put(f"{self._between}{quoted(name)}:{value}")
        self._between = ","

    def _item(self, value):
        self._put(f"{self._between}{value}")
        self._between = ","

    def _put(self, text):
        self._file.write(text)


def _open(path):
    """A file that was not there before: PATH, else PATH.0, PATH.1 and so on."""
    tried, number = path, 0
    while True:
        try:
            file = open(tried, "x", encoding="ascii", errors="replace")  # noqa: SIM115
        except FileExistsError:
            tried = f"{path}.{number}"
            number += 1
        except OSError:
            print(f"# skipping json output; {tried} not accessible")
            return open(os.devnull, "w", encoding="ascii", errors="replace")
        else:
            print(f"# Writing JSON output to {tried}")
            return file


def quoted(text):
    """A string as it is written there: slashes escaped, cut at what is not plain ASCII."""
    kept = []
    for character in text[:2040]:
        if character in '"\\/':
            kept.append("\\" + character)
        elif character in "\t\n":
            kept.append("\\t" if character == "\t" else "\\n")
        elif not " " <= character < "\x7f":
            break
        else:
            kept.append(character)
    return '"' + "".join(kept) + '"'


def boolean(value):
    """Booleans are strings."""
    return quoted("true" if value else "false")


def double(value):
    """A number with six decimals; what is none is a string."""
    return f"{value:f}" if abs(value) < float("inf") else quoted(str(value))


def listed(values):
    return "[" + ",".join(values) + "]"


def mapped(fields):
    return "{" + ",".join(f"{quoted(name)}:{value}" for name, value in fields.items()) + "}"
