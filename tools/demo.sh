#!/bin/sh
# `make demo`: installs what a user installs into .venv-demo, first without and then with PySpark, and shows the tables
# of a captured topic by either engine. The local part does not wait for PySpark, which is a large download.
#
# The folder .venv-demo keeps a file for each extra that is installed, with the path of the clone it was made for: an
# editable install does not survive a move. Plain POSIX sh, as prerequisites.sh.

cd "$(dirname "$0")/.." || exit 1

VENV=.venv-demo

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

# An interpreter that was replaced or removed leaves a link to nothing.
is_installed() {
    [ -x "$VENV/bin/python" ] && [ "$(cat "$VENV/.$1" 2>/dev/null)" = "$PWD" ] && [ -z "$(find pyproject.toml -newer "$VENV/.$1")" ]
}

# Installs this clone with the extra "$1".
install_extra() {
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$1]" || fail "\
pip could not install the extra $1; its own words are above. It fetches packages from an index: look at the network or \
the proxy, name an index of your own with PIP_INDEX_URL, or set PIP_NO_INDEX=1 and PIP_FIND_LINKS to a folder that has \
the wheels. Then run make demo again."
    printf '%s\n' "$PWD" >"$VENV/.$1"
}

make_environment() {
    python=$(tools/prerequisites.sh python) || exit 1
    echo "Setting up $VENV with $python: this clone, numpy, pyarrow, google-crc32c and rich, once."
    "$python" -m venv --clear "$VENV" || fail "\
$python could not make the folder $VENV; its own words are above. Fix that, or name another Python with \
PYTHON=/path/to/python3, and run make demo again."
    install_extra tables
}

is_installed tables || make_environment
"$VENV/bin/python" tools/demo.py local || exit 1

echo
tools/prerequisites.sh java || fail "So the same tables by PySpark are not shown. Run make demo again when Java is there."
if ! is_installed spark; then
    echo "Installing PySpark and pandas into $VENV, once; pip fetches some 450 MB."
    install_extra spark
fi
PYSPARK_PYTHON=$PWD/$VENV/bin/python
PYSPARK_DRIVER_PYTHON=$PYSPARK_PYTHON
export PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON
exec "$VENV/bin/python" tools/demo.py spark
