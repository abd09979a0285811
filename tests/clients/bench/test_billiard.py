#!/usr/bin/env python3
"""Gradients of the billiard over its range of velocities, plain and with contacts from distance.

    test_billiard.py SINEW_BENCH [POINTS]

Where the balls miss each other the plain slope is zero, and that with contacts from distance leads towards the nearest
velocity that hits. Where they hit, it has the sign of the plain one and is within 5 % of it: allowed beside that is 0.3 %
of the largest slope, which matters where the slope itself passes through zero and for the last grazing hits. POINTS
velocities are tried (301).
"""
import json
import subprocess
import sys

wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 301
run = subprocess.run([sys.argv[1], "sweep", "--task", "billiard", "--velocity", "cue_ball:1", "--from", "-1.5", "--to", "1.5",
                      "--points", str(wanted), "--json"], check=True, stdout=subprocess.PIPE, text=True)
points = [json.loads(line) for line in run.stdout.splitlines()]
hits = [p for p in points if p["touched"]]
misses = [p for p in points if not p["touched"]]
largest = max(abs(p["slope"]) for p in hits)
bad = []
for p in misses:
    towards = -p["slope_cfd"] * p["velocity"] < 0  # descent brings the velocity nearer to 0
    if p["slope"] != 0 or not towards:
        bad.append(p)
for p in hits:
    error = abs(p["slope_cfd"] - p["slope"])
    small = 0.003 * largest
    if error > max(0.05 * abs(p["slope"]), small) or (abs(p["slope"]) > small and p["slope"] * p["slope_cfd"] < 0):
        bad.append(p)
strict = sum(abs(p["slope_cfd"] - p["slope"]) > 0.05 * abs(p["slope"]) for p in hits)
print(f"{len(hits)} hits, {len(misses)} misses, {strict} hits beyond 5 % (all small), largest slope {largest:.3g}")
for p in bad:
    print("bad:", p)
sys.exit(1 if bad or len(points) != wanted or 3 * len(hits) < wanted - 1 or 6 * len(misses) < wanted - 1 else 0)
