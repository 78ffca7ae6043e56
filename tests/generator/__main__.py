"""Writes one synthetic job: python -m generator FOLDER LAYOUT RANKS CAUSE|none SEED"""

import pathlib
import sys

from generator import causes, rank_files

if len(sys.argv) != 6:
    sys.exit(__doc__)
folder, layout, ranks, cause, seed = sys.argv[1:]
for name, known in ((layout, causes.LAYOUTS), (cause, [*causes.CAUSES, *causes.ENDLESS, *causes.ONLY_THE_FILES, "none"])):
    if name not in known:
        sys.exit(f"{name}: expected one of {', '.join(known)}")
made = causes.case(layout, int(ranks), None if cause == "none" else cause, int(seed))
rank_files.write(made, pathlib.Path(folder), int(seed))
