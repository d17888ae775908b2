"""python read_vectors.py FILE prints the message, the version and the number of bytes of each line."""

import gzip
import json
import sys

with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
    for line in lines:
        vector = json.loads(line)
        print(vector["message"], vector["version"], len(bytes.fromhex(vector["hex"])))
