"""Prints random schedules, and what torch.profiler.schedule does in each of the first steps. Each line has a schedule
in the words of TPROF_SCHEDULE, and one digit per step."""

import random
import sys
import warnings

from torch.profiler import schedule

warnings.simplefilter("ignore")
dice = random.Random(11)
steps, how_many = map(int, sys.argv[1:])
for _ in range(how_many):
    words = {"active": dice.randint(1, 5)}
    for word, most in (("skip_first", 7), ("wait", 6), ("warmup", 4), ("repeat", 4), ("skip_first_wait", 1)):
        if dice.random() < 0.7:
            words[word] = dice.randint(0, most)
    actions = schedule(**({"wait": 0, "warmup": 0} | words))
    text = ",".join(f"{word}={n}" for word, n in dice.sample(sorted(words.items()), len(words)))
    print(text, "".join(str(actions(n).value) for n in range(steps)))
