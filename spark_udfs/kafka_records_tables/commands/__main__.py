"""`python -m kafka_records_tables.commands`."""

import sys

from kafka_records_tables.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
