"""Runs another script of this folder under torch.profiler, from its first call to its last.

under_kineto.py OUT SCRIPT ARGUMENTS... writes OUT/kineto-RANK.json: what the device did, as CUPTI recorded it.
"""

import os
import pathlib
import runpy
import sys

import torch
from torch.profiler import ProfilerActivity, profile

out, script, *arguments = sys.argv[1:]
path = pathlib.Path(__file__).parent / script
sys.argv = [str(path), *arguments]
with profile(activities=[ProfilerActivity.CUDA]) as profiler:
    runpy.run_path(str(path), run_name="__main__")
    torch.cuda.synchronize()
profiler.export_chrome_trace(os.path.join(out, f"kineto-{os.environ['RANK']}.json"))
