#!/bin/sh
# Checks what has to be on the machine before the set-up can do the rest.
#
#   tools/prerequisites.sh python    prints the interpreter to use: $PYTHON, or the first one that is new enough
#   tools/prerequisites.sh java      says nothing when the Java that Spark would start is new enough
#
# What is wrong is one sentence on standard error, with exit status 1. Plain POSIX sh, because the Python it finds may
# be too old to run anything of this project.

PYTHON_NEEDED=11 # the minor version of Python 3
JAVA_NEEDED=17

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

# Prints major.minor of the interpreter "$1", nothing when it does not run.
python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

is_new_enough() {
    case "$1" in
        3.*) [ "${1#3.}" -ge "$PYTHON_NEEDED" ] ;;
        *) false ;;
    esac
}

check_python() {
    found=""
    for candidate in ${PYTHON:-python3 python python3.14 python3.13 python3.12 python3.11}; do
        version=$(python_version "$candidate")
        if is_new_enough "$version"; then
            "$candidate" -c 'import ensurepip, venv' 2>/dev/null || fail "Python $version ($candidate) lacks the venv \
module: install it (on Debian and Ubuntu the package python$version-venv)."
            printf '%s\n' "$candidate"
            return
        fi
        [ -z "$found" ] && [ -n "$version" ] && found="Python $version ($candidate)"
    done
    fail "Python 3.$PYTHON_NEEDED or later is needed, found ${found:-none}: install one, or name it with PYTHON=/path/to/python3."
}

# Looks where Spark's launcher looks: in JAVA_HOME when that is set, and only otherwise on PATH.
check_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        java="$JAVA_HOME/bin/java"
        [ -x "$java" ] || fail "Spark needs Java $JAVA_NEEDED or later, but JAVA_HOME is $JAVA_HOME and has no bin/java: \
set it to an installed JDK or unset it."
    else
        java=$(command -v java) || fail "Spark needs Java $JAVA_NEEDED or later, but there is no java on PATH: install a \
JDK or set JAVA_HOME."
    fi
    # The quoted version follows the word "version"; Java 8 and older call themselves 1.8.
    version=$("$java" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p' | head -n 1)
    major=${version#1.}
    major=${major%%[!0-9]*}
    [ -n "$major" ] || fail "Spark needs Java $JAVA_NEEDED or later, and $java does not tell its version: install a JDK \
or set JAVA_HOME."
    [ "$major" -ge "$JAVA_NEEDED" ] || fail "Spark needs Java $JAVA_NEEDED or later, but $java is Java $version: install a \
newer JDK or set JAVA_HOME."
}

case "${1:-}" in
    python) check_python ;;
    java) check_java ;;
    *) fail "usage: tools/prerequisites.sh python|java" ;;
esac
